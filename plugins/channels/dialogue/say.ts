/** Messages that callers send to chats, without a run. */
import { Fault } from '../../../core/errors.ts'
import { tryLater } from '../../shared/try-later.ts'
import type { Channels } from '../contract.ts'
import type { DialogueDeps } from './deps.ts'
import { boundTo, hasRoom, pendingOp, placeOfConversation } from './place.ts'

/** See `Channels.say`. */
export function sayIn(deps: DialogueDeps): Channels['say'] {
	const { ctx, sessions } = deps
	return async (agent, conversation, content, key) => {
		const place = await placeOfConversation(deps, agent, conversation)
		if (!place)
			throw new Fault(
				'not_found',
				`agent "${agent.name}" has no chat with the conversation "${conversation.slice(0, 200)}"`,
				{ hint: { route: 'GET /v1/channels', does: 'lists channels, whose bindings are chats' } },
			)
		const { channel_id, chat } = place
		const bound = await boundTo(deps, agent, place)
		if (!bound) throw new Fault('conflict', `chat "${chat.id}" is not bound to agent "${agent.name}"; pair it first`)
		if (!hasRoom(deps, place))
			throw tryLater('queue_full', 'too many answers are pending in this channel; send the message again later', 5)
		const current = await sessions.current(channel_id, bound, chat)
		const { message, isNew } = await ctx.use('runs').say(agent, {
			conversation: current,
			content,
			about: 'A message was sent to this chat in your name, by your operator.',
			...(key !== undefined && {
				idempotency: { key, body: JSON.stringify([channel_id, chat.id, chat.thread_id, content]) },
			}),
			also: async (id) => [pendingOp(agent, place, id, current)],
		})
		// Uses the current instance, since this one may have been replaced meanwhile.
		if (isNew) await ctx.extensions('destination')[0]?.value.begun(message, channel_id)
		return { message_id: message.run_id, conversation: message.conversation, channel_id, chat_id: chat.id }
	}
}
