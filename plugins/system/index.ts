import type { Server } from '@hapi/hapi'
import { definePlugin } from '../../core/plugin.ts'
import type { Context } from '../../core/plugin.ts'
import { docsRoutes } from './docs/routes.ts'
import { documentRoutes } from './openapi/routes.ts'
import { routes } from './routes.ts'

/** The servers of the generation that is being built, in the order in which they are guarded: main, then legacy. */
const guarded = new WeakMap<Context, Server[]>()

/** What an operator asks of a gateway: is it alive, is it ready, what runs in it, what can it do. */
export default definePlugin({
	name: 'system',
	needs: ['auth'],
	// Guards nothing: this is where a plugin meets the servers of both addresses, and the description tells of both.
	guard(server, ctx) {
		guarded.set(ctx, [...(guarded.get(ctx) ?? []), server])
	},
	http(server, ctx) {
		routes(server, ctx)
		documentRoutes(server, legacyBeside(server, ctx), ctx)
		docsRoutes(server)
	},
})

/** The one that was guarded right behind this one; what stands before may be of a generation that was given up. */
function legacyBeside(main: Server, ctx: Context): Server | null {
	const servers = guarded.get(ctx) ?? []
	guarded.delete(ctx)
	const index = servers.findIndex((one) => one.listener === main.listener)
	return servers[index + 1] ?? null
}
