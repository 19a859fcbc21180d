import { definePlugin } from '../../core/plugin.ts'
import { routes } from './routes.ts'

/** gateway.yaml over HTTP: read, check and change it. */
export default definePlugin({
	name: 'configuration',
	needs: ['auth'],
	http: (server, ctx) => routes(server, ctx),
})
