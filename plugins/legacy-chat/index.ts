import { Fault } from '../../core/errors.ts'
import { definePlugin } from '../../core/plugin.ts'
import type { ChatSettings, LegacyChat } from './contract.ts'
import { shapeErrors } from './errors.ts'
import { routes } from './routes.ts'
import type { ChatSocket } from './socket.ts'
import { RESTARTING, upgrades } from './upgrade.ts'

/** The older chat API, at a separate address: a message and its reply. Runs, sessions and limits are the main API's. */
export default definePlugin<ChatSettings, LegacyChat>({
	name: 'legacy-chat',
	needs: ['auth', 'agents', 'runs'],
	start(ctx): LegacyChat {
		const { max_waiting, max_sockets } = ctx.config
		const auth = ctx.use('auth')
		const waiting = auth.openRequests({ limit: max_waiting, what: 'requests wait for their replies' })
		const sockets = auth.openRequests<ChatSocket>({ limit: max_sockets, what: 'WebSockets are open', areStreams: true })
		ctx.upgrade('legacy', '/api/agents/', upgrades(ctx, sockets))
		ctx.on('agent.deleted', ({ payload }) => {
			for (const socket of sockets)
				if (socket.agent.uid === payload.uid) socket.end(new Fault('not_found', 'the agent was deleted'))
		})
		ctx.defer(() => sockets.end(RESTARTING), 'WebSockets')
		ctx.defer(() => {
			// Requests finish in the generation in which they began, unless the gateway is stopping.
			if (ctx.gateway.state() === 'draining') void waiting.end(RESTARTING)
		}, 'requests that wait')
		return { waiting }
	},
	legacy(server, ctx, chat) {
		shapeErrors(server)
		routes(server, ctx, chat)
	},
})
