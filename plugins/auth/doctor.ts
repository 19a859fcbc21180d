/** What `svc doctor` checks: which callers need no token, and whether an active token exists. */
import { error, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding, CheckContext } from '../../core/cli/doctor/contract.ts'
import { readRuntimeFile } from '../../core/process/runtime-file.ts'
import { isLoopback } from './address.ts'
import { canAdminister, noAdministrator } from './administrators.ts'
import type { Token } from './contract.ts'
import { TOKENS, view } from './tokens.ts'
import type { TokenRecord } from './tokens.ts'

const DAY_MS = 86_400_000
const SOON_DAYS = 14
/** Expiring tokens that one report lists. */
const SHOWN = 20

export default {
	place: [
		{
			about: 'tokens',
			/** A running gateway refuses the change to token mode while no token could administer it. */
			async run({ auth_mode, auth }, context) {
				const gateway = auth_mode === 'token' ? await context.gateway() : null
				const { in_force, variables } = readRuntimeFile(context.home)?.settings ?? {}
				// A variable of the running gateway overrides this setting of the file.
				if (!gateway || in_force?.auth_mode !== 'loopback' || variables?.auth_mode) return []
				if (canAdminister(await tokensOf(context), auth.oidc)) return []
				return [{ path: 'auth_mode', message: noAdministrator, isRefused: true }]
			},
		},
	],
	checks: [
		{
			id: 'loopback.public',
			about: 'which callers have access without a token',
			async run(context) {
				const { auth_mode, server } = await context.config()
				if (auth_mode === 'token') return ok('every request needs a token')
				if (server.host === 'localhost' || isLoopback(server.host))
					return ok('only programs on this machine have access without a token')
				return warning(
					`auth_mode is loopback, and the gateway listens at ${server.host}, where other machines reach it: every program on this machine, such as a reverse proxy, has access without a token`,
					'set auth_mode: token in gateway.yaml, or server.host: 127.0.0.1',
				)
			},
		},
		{
			id: 'token.none',
			about: 'whether a valid token exists',
			async run(context) {
				if ((await context.config()).auth_mode !== 'token') return []
				const tokens = await tokensOf(context)
				if (tokens.some(({ status }) => status === 'active')) return ok('there is an active token')
				if (tokens.length === 0)
					return warning(
						'every request needs a token, and none was created yet',
						"create the first one on this machine, which needs none: svc tokens create --scope '*'",
					)
				return error(
					'every request needs a token, and every token was revoked or has expired',
					"set auth_mode: loopback, create a token on this machine (svc tokens create --scope '*'), and set auth_mode back",
				)
			},
		},
		{
			id: 'token.expiry',
			about: 'tokens that expire soon',
			async run(context) {
				const active = (await tokensOf(context)).filter(({ status }) => status === 'active')
				const soon = active
					.map((token) => ({ ...token, days: daysLeft(token) }))
					.filter(({ days }) => days <= SOON_DAYS)
					.toSorted((a, b) => a.days - b.days)
				if (soon.length === 0)
					return ok(
						active.length === 0
							? 'there are no active tokens'
							: `no active token expires soon (${active.length} checked)`,
					)
				return soon
					.slice(0, SHOWN)
					.map(({ id, scopes, expires_at }): Finding =>
						warning(
							`the token ${id} (${scopes.join(' ')}) expires at ${expires_at}`,
							`create another one for the clients that use this one: svc tokens create --scope '${scopes.join(',')}'`,
						),
					)
			},
		},
	],
} satisfies DoctorFile

function tokensOf(context: CheckContext): Promise<Token[]> {
	return context.once('tokens', async () => {
		const gateway = await context.gateway()
		if (gateway) return (await gateway.get<{ tokens: Token[] }>('/v1/auth/tokens')).tokens
		const store = await context.store()
		return store ? Array.fromAsync(store.list<TokenRecord>(TOKENS), ({ value }) => view(value)) : []
	})
}

function daysLeft({ expires_at }: Token): number {
	return expires_at === null ? Infinity : (Date.parse(expires_at) - Date.now()) / DAY_MS
}
