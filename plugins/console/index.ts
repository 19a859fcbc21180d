import { definePlugin } from '../../core/plugin.ts'
import type {} from '../system/contract.ts'
import { addedPages } from './added-pages.ts'
import { contentSecurityPolicy, pages } from './pages.ts'
import { routes } from './routes.ts'

/** Pages for operators in a browser. They use the public API only. */
export default definePlugin({
	name: 'console',
	needs: ['auth', 'system'],
	start(ctx) {
		ctx.extend('front-page', { html: async () => (await pages()).html, contentSecurityPolicy })
	},
	http: (server, ctx) => routes(server, addedPages(ctx)),
})
