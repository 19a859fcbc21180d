import { OpenRequests } from '../../core/open-requests.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'
import { chatRoutes } from './chat-routes.ts'
import type { OpenAiApi, OpenAiSettings } from './contract.ts'
import { shapeErrors } from './errors.ts'
import { modelRoutes } from './model-routes.ts'
import { responseRoutes } from './response-routes.ts'
import { sweep } from './stored.ts'

const HOUR_MS = 3_600_000

/** Agents as models of an OpenAI-compatible API. Each request is an ordinary run. */
export default definePlugin<OpenAiSettings>({
	name: 'openai-api',
	needs: ['auth', 'agents', 'runs'],
	config: (joi) =>
		joi.object<OpenAiSettings>({
			user_is_conversation: joi
				.boolean()
				.default(true)
				.description('Whether the field user names a conversation that is kept. Default true.'),
			max_open: joi
				.number()
				.integer()
				.min(1)
				.max(20_000)
				.default(1_000)
				.description('Requests at the same time; the next one gets 503. Default 1000.'),
			heartbeat_s: joi
				.number()
				.integer()
				.min(1)
				.max(60)
				.default(15)
				.description('Seconds without a word after which a stream gets a comment. Default 15.'),
			stall_timeout_s: joi
				.number()
				.integer()
				.min(1)
				.max(300)
				.default(30)
				.description('Seconds for which a client may take nothing before its stream is cut. Default 30.'),
		}),
	start(ctx): OpenAiApi {
		const open: OpenAiApi['open'] = new OpenRequests({
			limit: ctx.config.max_open,
			what: 'requests are under way',
			check: async (caller: Credentials) => ctx.use('auth').check(caller),
		})
		ctx.defer(() => {
			// Like every request, they end in the generation in which they began, unless there is no next one.
			if (ctx.gateway.state() === 'draining') void open.end('the gateway is stopping')
		}, 'requests under way')
		const tidy = (): void =>
			void sweep(ctx).catch((error: unknown) => ctx.log.error({ err: error }, 'old responses could not be tidied away'))
		const timer = setInterval(tidy, HOUR_MS).unref()
		ctx.defer(() => clearInterval(timer), 'housekeeping timer')
		return { open }
	},
	http(server, ctx) {
		shapeErrors(server, ctx.name)
		modelRoutes(server, ctx)
		chatRoutes(server, ctx)
		responseRoutes(server, ctx)
	},
})
