/** Chats as destinations of results. A result has the record of a reply, so it is sent like an answer. */
import { now } from '../../../core/util/ids.ts'
import type { Destinations, RunRecord } from '../../runs/contract.ts'
import { invalidField } from '../../shared/invalid-field.ts'
import type { FollowedRun } from './followed.ts'
import type { DialogueDeps } from './deps.ts'
import { boundTo, hasRoom, pendingOp, placeOf } from './place.ts'
import { keys } from './records.ts'
import type { ConversationChat, Reply } from './records.ts'
import { texts } from './texts.ts'

/** Limit of ancestors of a run that are searched for its chat. */
const DEPTH_LIMIT = 8

/** `catchUp` is called with a run that may already have ended. */
export function destinationsOf(deps: DialogueDeps, catchUp: (run: FollowedRun) => Promise<unknown>): Destinations {
	const { ctx, registry, runs, sessions } = deps
	const { store } = ctx
	return {
		async origin(run) {
			let ancestor: RunRecord | undefined = run
			for (let depth = 0; ancestor && depth < DEPTH_LIMIT; depth++) {
				const talk = await store.get<ConversationChat>(keys.talk(ancestor.agent_uid, ancestor.conversation))
				if (talk) return { channel_id: talk.value.channel_id, chat: talk.value.chat }
				ancestor = ancestor.parent && (await ctx.use('runs').find(ancestor.parent.run_id))
			}
			return undefined
		},
		async check(agent, destination) {
			const place = await placeOf(deps, destination)
			if (!place) return destination
			const { channel_id, chat } = place
			const deliver = destination.deliver === 'origin' ? 'origin' : { channel: channel_id, chat: chat.id }
			if (await boundTo(deps, agent, place)) return { ...destination, deliver }
			const message = `chat "${chat.id}" of channel "${channel_id}" is not bound to agent "${agent.name}"; pair it first, or give another chat, with the id of its channel (or the type, if only one channel has it)`
			throw invalidField('deliver', message)
		},
		async open(agent, destination, conversation) {
			const place = await placeOf(deps, destination)
			if (!place) return undefined
			const { channel_id, chat } = place
			const about = { channel_id, chat_id: chat.id }
			const failed = (code: string, message: string) => ({ ...about, failed: { code, message }, ops: () => [] })
			const bound = await boundTo(deps, agent, place)
			if (!bound) return failed('unbound', 'the chat is no longer bound to the agent')
			if (!hasRoom(deps, place)) return failed('queue_full', 'too many answers are pending in the channel')
			const current = await sessions.current(channel_id, bound, chat)
			return {
				...about,
				place: texts.deliveredTo(registry.channel(channel_id)?.label ?? 'a chat platform', chat.kind),
				ops: (run_id) => [
					pendingOp(agent, place, run_id, current),
					// Gives what the run sets up the same origin.
					...(conversation === current
						? []
						: [{ key: keys.talk(agent.uid, conversation), value: { ...place, at: now() } satisfies ConversationChat }]),
				],
			}
		},
		async begun({ run_id, agent_uid }, channel_id) {
			const entry = await store.get<Reply>(keys.reply(agent_uid, channel_id, run_id))
			if (entry) await catchUp(await runs.follow(entry.value))
		},
	}
}
