import type { RequestRoute, Server } from '@hapi/hapi'
import { Fault } from '../../core/errors.ts'
import { shareForBody } from '../../core/http/body-budget.ts'
import { hasBody } from '../../core/http/server.ts'
import { reaches, unknownAgent } from '../shared/agent-limit.ts'
import { scopesOf } from '../shared/scopes.ts'
import type { RouteAccess } from '../../core/http/hapi-types.ts'
import type { GenerationView } from '../../core/plugin.ts'
import { setCause } from '../../core/util/context.ts'
import type { Auth, Credentials, Needs } from './contract.ts'
import { noLongerValid } from './open-requests.ts'

const STRATEGY = 'gateway'
/** All callers without a token share one budget for bodies, since nothing distinguishes them. */
const LOCAL = 'local'

/**
 * Makes a server authenticate every request whose route does not set `auth: false`. The server refuses to start with a route
 * that would grant access by mistake. A token for some agents may use the routes of these agents (`/v1/agents/{name}`), and
 * routes with `agents: 'checked'`, whose handlers hide all other agents.
 */
export function guard(server: Server, auth: Auth, generation: GenerationView): void {
	// If a client disconnects early, its request continues. The events that it still causes must name the caller.
	server.events.on('response', ({ plugins, raw: { res } }) => {
		const { forget } = plugins as Remembered
		if (!forget) return
		if (res.closed || res.writableFinished) forget()
		else res.once('close', forget)
	})
	server.auth.scheme(STRATEGY, () => ({
		// hapi compares the scopes later, too. Here the body has not been read yet, and the error names the missing scope.
		authenticate: async (request, h) => {
			const { agent, needs } = demandsOf(request.route, scopesOf(server.auth.lookup(request.route)))
			const name = agent === undefined ? undefined : String((request.params as Record<string, unknown>)[agent])
			const credentials = await auth.authenticate(request.raw.req, needs, name)
			if (name !== undefined && !reaches(credentials, name)) throw unknownAgent(name)
			// Not in a WeakMap of all requests, which costs the garbage collector more than all else in this function.
			;(request.plugins as Remembered).forget = setCause(credentials)
			if (request.payload === undefined && hasBody(request)) {
				// The body may take seconds to arrive, and the token may be revoked before that.
				if (canBeRevoked(credentials))
					request.plugins.afterBody = async () => {
						if (!(await auth.check(credentials))) throw noLongerValid()
					}
				const share = shareForBody(request, credentials.token_id ?? LOCAL)
				if (share) await share
			}
			return h.authenticated({ credentials })
		},
	}))
	server.auth.strategy(STRATEGY, STRATEGY)
	server.auth.default({ strategy: STRATEGY, access: { scope: ['*'] } })
	server.ext('onPreStart', () => {
		for (const route of server.table()) refuseLoophole(route, server.auth.lookup(route), generation)
	})
}

/** In `request.plugins`. After `forget`, events no longer name the caller. */
interface Remembered {
	forget?: () => void
}

/** Whether the credentials can be revoked. Access tokens of the identity provider cannot. */
function canBeRevoked({ token_id, claims, session }: Credentials): boolean {
	return token_id !== null && (claims === undefined || session !== undefined)
}

/** `agent`: the path parameter with the name of the agent; undefined for a route that is not about exactly one agent. */
function demandsOf(
	{ path, settings }: RequestRoute,
	scopes: readonly string[],
): { agent: string | undefined; needs: Needs } {
	const agent = /^\/(?:v1|api)\/agents\/\{(\w+)\}/.exec(path)?.[1]
	const own = settings.plugins?.auth
	return { agent, needs: { ...own, scopes, wholeGateway: agent === undefined && own?.agents !== 'checked' } }
}

function refuseLoophole(route: RequestRoute, rules: RouteAccess | false, { scopes, isBuiltIn }: GenerationView): void {
	if (rules === false) return // set explicitly: a route that sets nothing has the default here
	const { strategies, mode, access = [] } = rules
	const complain = (problem: string): never => {
		const { plugin } = route.realm
		throw new Fault(
			'plugin_failed',
			`plugin "${plugin}": the route ${route.method.toUpperCase()} ${route.path} ${problem}; its options.auth must be { access: { scope: [<scope>, '*'] } }, false, or absent`,
		)
	}
	if (strategies.join() !== STRATEGY || mode !== 'required')
		complain("does not require the gateway's own authentication")
	const [rule, ...others] = access
	const scope = rule?.scope
	if (others.length > 0 || !scope || scope.required || scope.forbidden || rule.entity !== undefined) {
		return complain('must have exactly one rule of access, with scopes of which any one is enough')
	}
	if (!scope.selection?.includes('*')) complain('refuses callers that have the scope *')
	// Tokens may have scopes of built-in plugins that are switched off.
	if (isBuiltIn(route.realm.plugin)) return
	const unknown = scope.selection?.find((name) => !scopes.has(name))
	if (unknown !== undefined)
		complain(`requires the scope "${unknown}", which no token can have, since no plugin declares it`)
}
