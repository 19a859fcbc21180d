import { definePlugin } from '../../core/plugin.ts'
import { chatRoutes } from './chat-routes.ts'
import type { OpenAiApi, OpenAiSettings } from './contract.ts'
import { shapeErrors } from './errors.ts'
import { embeddingRoutes } from './embedding-routes.ts'
import { modelRoutes } from './model-routes.ts'
import { responseRoutes } from './response-routes.ts'
import { sweep } from './stored.ts'

const HOUR_MS = 3_600_000

/** Agents as models of an OpenAI-compatible API. Each request is an ordinary run. */
export default definePlugin<OpenAiSettings, OpenAiApi>({
	name: 'openai-api',
	needs: ['auth', 'agents', 'attachments', 'runs'],
	start(ctx): OpenAiApi {
		const open = ctx.use('auth').openRequests({ limit: ctx.config.max_open, what: 'requests are in progress' })
		ctx.defer(() => {
			// On a reload, they continue in their generation, as every request does.
			if (ctx.gateway.state() === 'draining') void open.end('the gateway is stopping')
		}, 'requests in progress')
		ctx.every(HOUR_MS, () => sweep(ctx))
		return { open }
	},
	http(server, ctx, service) {
		shapeErrors(server, ctx.name)
		modelRoutes(server, ctx)
		chatRoutes(server, ctx, service)
		responseRoutes(server, ctx, service)
		embeddingRoutes(server, ctx, service)
	},
})
