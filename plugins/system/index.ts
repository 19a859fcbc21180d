import { definePlugin } from '../../core/plugin.ts'
import { tellDeprecated } from './deprecated.ts'
import events from './events.ts'
import { docsRoutes } from './docs/routes.ts'
import { frontPage } from './front-page.ts'
import { documentRoutes } from './openapi/routes.ts'
import { routes } from './routes.ts'

/** An operator's view of a gateway: health, readiness, its plugins, its API. */
export default definePlugin({
	name: 'system',
	needs: ['auth'],
	events,
	guard: tellDeprecated,
	http(server, ctx, _service, generation) {
		frontPage(server, ctx)
		routes(server, ctx)
		documentRoutes(server, generation, ctx)
		docsRoutes(server)
	},
})
