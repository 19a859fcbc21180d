import { definePlugin } from '../../core/plugin.ts'
import { vaultRead } from './primitive.ts'
import { routes } from './routes.ts'
import { openVault } from './vault.ts'

/** Secrets, encrypted at rest; who may read them; the primitive `vault.read`. */
export default definePlugin({
	name: 'vault',
	needs: ['auth', 'agents'],
	async start(ctx) {
		const vault = await openVault(ctx)
		ctx.primitive(vaultRead(vault))
		ctx.on('agent.deleted', ({ payload }) => vault.grants.forgetAgent(String(payload.uid)))
		void ctx.serving
			.then(() => vault.grants.sweep())
			.catch((error: unknown) => ctx.log.error({ err: error }, 'void grants could not be swept'))
		return vault
	},
	http: (server, ctx) => routes(server, ctx),
})
