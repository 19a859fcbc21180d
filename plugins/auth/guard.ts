import type { RequestRoute, Server } from '@hapi/hapi'
import { Fault } from '../../core/errors.ts'
import { scopesOf } from '../../core/routes.ts'
import type { RouteAccess } from '../../core/routes.ts'
import type { Auth } from './contract.ts'
import { hasOneHost } from './local.ts'
import { scopeNames } from './scopes.ts'

const STRATEGY = 'gateway'

/**
 * Makes one server ask for a caller wherever a route does not say `auth: false`, and refuses to start with a route that
 * would let somebody in by mistake. `auth` is asked for at each request, since the plugin may have been replaced meanwhile.
 */
export function guard(server: Server, auth: () => Auth): void {
	server.ext('onRequest', (request, h) => {
		if (!hasOneHost(request.raw.req)) throw new Fault('invalid_request', 'send exactly one Host header')
		return h.continue
	})
	server.auth.scheme(STRATEGY, () => ({
		// hapi compares the scopes again later; here the refusal comes before the body is read, and names what is missing.
		authenticate: async (request, h) =>
			h.authenticated({
				credentials: await auth().authenticate(request.raw.req, {
					...request.route.settings.plugins?.auth,
					scopes: scopesOf(server.auth.lookup(request.route)),
				}),
			}),
	}))
	server.auth.strategy(STRATEGY, STRATEGY)
	server.auth.default({ strategy: STRATEGY, access: { scope: ['*'] } })
	server.ext('onPreStart', () => {
		for (const route of server.table()) refuseLoophole(route, server.auth.lookup(route))
	})
}

function refuseLoophole(route: RequestRoute, rules: RouteAccess | false): void {
	if (rules === false) return // said so explicitly: where a route says nothing, the default answers here
	const { strategies, mode, access = [] } = rules
	const complain = (problem: string): never => {
		const { plugin } = route.realm
		throw new Fault(
			'plugin_failed',
			`plugin "${plugin}": the route ${route.method.toUpperCase()} ${route.path} ${problem}; its options.auth must be scoped(<scope>) as in core/routes.ts, false, or left out`,
		)
	}
	if (strategies.join() !== STRATEGY || mode !== 'required')
		complain("does not require the gateway's own authentication")
	const [rule, ...others] = access
	const scope = rule?.scope
	if (others.length > 0 || !scope || scope.required || scope.forbidden || rule.entity !== undefined) {
		return complain('must have exactly one rule of access, with scopes of which any one is enough')
	}
	if (!scope.selection?.includes('*')) complain('shuts out callers that may do everything')
	const unknown = scope.selection?.find((one) => !scopeNames.includes(one))
	if (unknown !== undefined) complain(`asks for the scope "${unknown}", which no token can have`)
}
