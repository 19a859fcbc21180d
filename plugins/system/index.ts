import { definePlugin } from '../../core/plugin.ts'
import { routes } from './routes.ts'

/** What an operator asks of a gateway: is it alive, is it ready, what runs in it, what can it do. */
export default definePlugin({
	name: 'system',
	needs: ['auth'],
	http: (server, ctx) => routes(server, ctx),
})
