import { definePlugin } from '../../core/plugin.ts'
import { chatRoutes } from './chat-routes.ts'
import type { OpenRequest, OpenRequests } from '../auth/contract.ts'
import type { OpenAiSettings } from './contract.ts'
import { shapeErrors } from './errors.ts'
import { embeddingRoutes } from './embedding-routes.ts'
import { modelRoutes } from './model-routes.ts'
import { responseRoutes } from './response-routes.ts'
import { sweep } from './stored.ts'

const HOUR_MS = 3_600_000

/** Agents as models of an OpenAI-compatible API. Each request is an ordinary run. */
export default definePlugin<OpenAiSettings, { open: OpenRequests<OpenRequest> }>({
	name: 'openai-api',
	needs: ['auth', 'agents', 'attachments', 'runs'],
	start(ctx) {
		const limit = ctx.config.max_open
		const open = ctx.use('auth').openRequests({ limit, what: 'requests are in progress' })
		ctx.defer(() => {
			// On a reload, they continue in their generation, as every request does.
			if (ctx.gateway.state() === 'draining') void open.end('the gateway is stopping')
		}, 'requests in progress')
		ctx.every(HOUR_MS, () => sweep(ctx))
		// Not the table itself: `http` gets a late-bound service, and requests still leave the table after the plugin has ended.
		return { open }
	},
	http(server, ctx, { open }) {
		shapeErrors(server, ctx.name)
		modelRoutes(server, ctx)
		chatRoutes(server, ctx, open)
		responseRoutes(server, ctx, open)
		embeddingRoutes(server, ctx, open)
	},
})
