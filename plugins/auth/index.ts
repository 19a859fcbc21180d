import { randomText } from '../../core/ids.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import { isLoopback } from './address.ts'
import { callersOf } from './callers.ts'
import type { AuthSettings } from './contract.ts'
import { guard } from './guard.ts'
import { routes } from './routes.ts'
import { tokensOf } from './tokens.ts'

const SETUP_CODE_BYTES = 15

/** Who may do what: bearer tokens with scopes, local callers, the first token. Every plugin with routes needs it. */
export default definePlugin<AuthSettings>({
	name: 'auth',
	config: (joi) =>
		joi.object<AuthSettings>({
			auth_mode: joi.valid('loopback', 'token').required(),
			allowed_hosts: joi.array().items(joi.string()).required(),
			host: joi.string().required(),
		}),
	async start(ctx) {
		const tokens = tokensOf(ctx)
		const setupCode = randomText(SETUP_CODE_BYTES)
		warnOfOpenAddress(ctx)
		if (await tokens.noneYet()) {
			ctx.log.info(
				`no token was created yet. The first may be created without one: from this machine at once, from elsewhere with the header X-Setup-Code: ${setupCode}`,
			)
		}
		return { tokens, ...callersOf(ctx.config, tokens, setupCode) }
	},
	guard: (server, ctx) => guard(server, () => ctx.use('auth')),
	http: (server, ctx) => routes(server, ctx),
})

function warnOfOpenAddress({ config, log }: Context<AuthSettings>): void {
	const { auth_mode, host } = config
	if (auth_mode !== 'loopback' || host === 'localhost' || isLoopback(host)) return
	log.warn(
		`auth_mode is loopback and the gateway listens at ${host}, where other machines reach it: they need a token, every program of this machine needs none; set auth_mode: token, or server.host: 127.0.0.1`,
	)
}
