import { definePlugin } from '../../core/plugin.ts'
import { markDeprecated } from './deprecated.ts'
import events from './events.ts'
import { docsRoutes } from './docs/routes.ts'
import { frontPage } from './front-page.ts'
import { documentRoutes } from './openapi/routes.ts'
import { routes } from './routes.ts'

/** For operators: health, readiness, the plugins, and the reference of the API. */
export default definePlugin({
	name: 'system',
	needs: ['auth'],
	events,
	guard: markDeprecated,
	http(server, ctx, _service, generation) {
		frontPage(server, ctx)
		routes(server, ctx)
		documentRoutes(server, generation, ctx)
		docsRoutes(server)
	},
})
