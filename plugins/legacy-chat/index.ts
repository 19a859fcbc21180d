import { Fault } from '../../core/errors.ts'
import { OpenRequests } from '../../core/open-requests.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'
import type { ChatSettings, LegacyChat, Sockets, Waiting } from './contract.ts'
import { shapeErrors } from './errors.ts'
import { routes } from './routes.ts'
import { RESTARTING, upgrades } from './upgrade.ts'

/** The older chat surface, on an address of its own: a message, and its reply. Runs, sessions and limits are the main API's. */
export default definePlugin<ChatSettings>({
	name: 'legacy-chat',
	needs: ['auth', 'agents', 'runs'],
	config: (joi) =>
		joi.object<ChatSettings>({
			max_waiting: joi
				.number()
				.integer()
				.min(1)
				.max(20_000)
				.default(1_000)
				.description('Requests that wait for their replies at the same time, streams included. Default 1000.'),
			max_sockets: joi
				.number()
				.integer()
				.min(1)
				.max(20_000)
				.default(1_000)
				.description('WebSockets that may be open at the same time. Default 1000.'),
			heartbeat_s: joi
				.number()
				.integer()
				.min(1)
				.max(60)
				.default(15)
				.description('Seconds without a word after which a stream gets a comment. Default 15.'),
			ping_s: joi
				.number()
				.integer()
				.min(1)
				.max(300)
				.default(30)
				.description('Seconds between the pings of a WebSocket. Default 30.'),
			stall_timeout_s: joi
				.number()
				.integer()
				.min(1)
				.max(300)
				.default(30)
				.description('Seconds for which a client may take nothing before its stream is cut. Default 30.'),
		}),
	start(ctx): LegacyChat {
		const { max_waiting, max_sockets } = ctx.config
		const check = async (caller: Credentials): Promise<boolean> => ctx.use('auth').check(caller)
		const waiting: Waiting = new OpenRequests({ limit: max_waiting, what: 'requests wait for their replies', check })
		const sockets: Sockets = new OpenRequests({ limit: max_sockets, what: 'WebSockets are open', check })
		ctx.upgrade('legacy', '/api/agents/', upgrades(ctx, sockets))
		ctx.on('agent.deleted', ({ payload }) => {
			for (const socket of sockets)
				if (socket.agent.uid === payload.uid) socket.end(new Fault('not_found', 'the agent was deleted'))
		})
		ctx.defer(() => sockets.end(RESTARTING), 'WebSockets')
		ctx.defer(() => {
			// Like every request, they end in the generation in which they began, unless there is no next one.
			if (ctx.gateway.state() === 'draining') void waiting.end(RESTARTING)
		}, 'requests that wait')
		return { waiting, sockets }
	},
	legacy(server, ctx) {
		shapeErrors(server)
		routes(server, ctx)
	},
})
