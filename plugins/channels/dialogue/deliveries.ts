/**
 * What reaches a chat although no message asked for it: results of runs, and messages that callers send. Both use the records of
 * replies, so they are sent as answers are.
 */
import { Fault } from '../../../core/errors.ts'
import { now } from '../../../core/util/ids.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { Op } from '../../../core/store/ports.ts'
import type { Deliverer, Delivery, OpenDelivery, RunRecord } from '../../runs/contract.ts'
import type { ChatKind, ChatRef } from '../adapter.ts'
import type { Channels } from '../contract.ts'
import type { BoundChat, Registry } from '../parts.ts'
import type { Followed, FollowedRuns } from './followed.ts'
import type { Marks } from './marks.ts'
import { keys } from './records.ts'
import type { Reply, Talk } from './records.ts'
import type { Sessions } from './sessions.ts'
import { texts } from './texts.ts'

export interface DeliveryRooms {
	ctx: Pick<Context, 'store' | 'use' | 'emit' | 'log'>
	registry: Registry
	marks: Pick<Marks, 'kindOf' | 'within'>
	runs: Pick<FollowedRuns, 'follow' | 'count'>
	sessions: Pick<Sessions, 'current'>
}

export interface Deliveries {
	deliverer: Deliverer
	say: Channels['say']
}

/** A chat, as it is stored with what delivers to it. */
interface Place {
	channel_id: string
	chat: ChatRef & { kind: ChatKind }
}

/** Pending answers of one channel beyond which nothing more is delivered. */
const PENDING_LIMIT = 5_000
/** Runs above a run that are searched for a chat. */
const DEPTH_LIMIT = 8

/** `followed`: looks at a run that may have ended meanwhile. */
export function openDeliveries(rooms: DeliveryRooms, followed: (run: Followed) => Promise<unknown>): Deliveries {
	const { ctx, registry, marks, runs, sessions } = rooms
	const { store } = ctx

	const placeIn = async (delivery: Delivery): Promise<Place | undefined> => {
		const { deliver, origin } = delivery
		if (deliver === 'origin') return origin as unknown as Place | undefined
		if (deliver === 'none') return undefined
		const { channel, chat } = deliver
		return { channel_id: channel, chat: { id: chat, kind: await marks.kindOf(channel, chat) } }
	}
	/** Follows the pending answer of a run, if there is one. */
	const followPending = async (agent_uid: string, channel_id: string, run_id: string): Promise<void> => {
		const entry = await store.get<Reply>(keys.reply(agent_uid, channel_id, run_id))
		if (entry) await followed(await runs.follow(entry.value))
	}

	const deliverer: Deliverer = {
		async origin(run) {
			let one: RunRecord | undefined = run
			for (let depth = 0; one && depth < DEPTH_LIMIT; depth++) {
				const talk = await store.get<Talk>(keys.talk(one.agent_uid, one.conversation))
				if (talk) return { channel_id: talk.value.channel_id, chat: talk.value.chat }
				one = one.parent && (await ctx.use('runs').find(one.parent.run_id))
			}
			return undefined
		},
		async check(agent, delivery) {
			const place = await placeIn(delivery)
			if (!place || (await boundTo(rooms, agent, place))) return
			const message = `chat "${place.chat.id}" of channel "${place.channel_id}" is not bound to agent "${agent.name}"; pair it first, or give another chat`
			throw new Fault('invalid_request', message, { errors: [{ path: 'deliver', message }] })
		},
		async open(agent, delivery, conversation): Promise<OpenDelivery | undefined> {
			const place = await placeIn(delivery)
			if (!place) return undefined
			const { channel_id, chat } = place
			const failed = (code: string, message: string): OpenDelivery => ({
				failed: { code, message, channel_id, chat_id: chat.id },
				ops: () => [],
				begun: async () => {},
			})
			const bound = await boundTo(rooms, agent, place)
			if (!bound) return failed('unbound', 'the chat is not bound to the agent any more')
			if (runs.count(channel_id) >= PENDING_LIMIT) return failed('queue_full', 'too many answers wait for the channel')
			const chats = await sessions.current(channel_id, bound, chat)
			return {
				place: texts.deliveredTo(registry.channel(channel_id)?.label ?? 'a chat platform', chat.kind),
				ops: (run_id) => [
					pendingOp(agent, place, run_id, chats),
					// What the run sets up has the same origin.
					...(conversation === chats
						? []
						: [{ key: keys.talk(agent.uid, conversation), value: { ...place, at: now() } satisfies Talk }]),
				],
				begun: ({ run_id }) => followPending(agent.uid, channel_id, run_id),
			}
		},
	}
	return {
		deliverer,
		async say(agent, conversation, content, key) {
			const place = await placeOf(rooms, agent, conversation)
			if (!place)
				throw new Fault(
					'not_found',
					`agent "${agent.name}" has no chat with the conversation "${conversation.slice(0, 200)}"`,
					{ hint: { route: 'GET /v1/channels', does: 'lists channels, whose bindings are chats' } },
				)
			const { channel_id, chat } = place
			const bound = await boundTo(rooms, agent, place)
			if (!bound) throw new Fault('conflict', `chat "${chat.id}" is not bound to agent "${agent.name}"; pair it first`)
			if (runs.count(channel_id) >= PENDING_LIMIT)
				throw new Fault('queue_full', 'too many answers wait for this channel; send it again later', {
					headers: { 'retry-after': '5' },
				})
			const current = await sessions.current(channel_id, bound, chat)
			const { message, isNew } = await ctx.use('runs').say(agent, {
				conversation: current,
				content,
				about: 'A message was sent to this chat in your name, by whoever runs you.',
				...(key !== undefined && {
					idempotency: { key, body: JSON.stringify([channel_id, chat.id, chat.thread_id, content]) },
				}),
				also: async (id) => [pendingOp(agent, place, id, current)],
			})
			if (isNew) await followPending(agent.uid, channel_id, message.run_id)
			return { message_id: message.run_id, conversation: message.conversation, channel_id, chat_id: chat.id }
		},
	}
}

/** The binding of the chat, if it is one of this agent's. */
export async function boundTo(
	{ registry, marks }: Pick<DeliveryRooms, 'registry' | 'marks'>,
	{ uid }: Pick<AgentRef, 'uid'>,
	{ channel_id, chat }: Place,
): Promise<BoundChat | undefined> {
	const bound = await registry.bound(channel_id, [chat.id, ...(await marks.within(channel_id, chat.id))])
	return bound?.agent.uid === uid ? bound : undefined
}

/** Reports a result that was not delivered and is not tried again. */
export async function tellUndelivered(
	{ emit, log }: Pick<Context, 'emit' | 'log'>,
	{ run_id, agent, channel_id, chat }: Reply,
	code: string,
	message: string,
): Promise<void> {
	try {
		await emit(
			{ event_type: 'delivery.failed', payload: { run_id, channel_id, chat_id: chat.id, code, message } },
			agent,
		)
	} catch (error) {
		log.error({ err: error, run_id }, 'the event of a failed delivery could not be written')
	}
}

/** The chat of a conversation, or of a binding in which nothing was said yet. */
async function placeOf(
	{ ctx, registry, marks }: DeliveryRooms,
	agent: AgentRef,
	conversation: string,
): Promise<Place | undefined> {
	const talk = await ctx.store.get<Talk>(keys.talk(agent.uid, conversation))
	if (talk) return { channel_id: talk.value.channel_id, chat: talk.value.chat }
	const [, binding_id] = /^channel:([0-9a-f-]{36})$/.exec(conversation) ?? []
	const found = binding_id === undefined ? undefined : await registry.chatOf(binding_id)
	if (!found) return undefined
	const { channel_id, chat_id } = found
	const place = { channel_id, chat: { id: chat_id, kind: await marks.kindOf(channel_id, chat_id) } }
	// Whether another agent has such a chat is none of the caller's business.
	return (await boundTo({ registry, marks }, agent, place)) && place
}

function pendingOp({ name, uid }: AgentRef, { channel_id, chat }: Place, run_id: string, conversation: string): Op {
	const value: Reply = {
		run_id,
		agent: name,
		agent_uid: uid,
		conversation,
		channel_id,
		chat,
		delivered: true,
		asked: [],
		said: null,
		saying: null,
		preview: null,
	}
	return { key: keys.reply(uid, channel_id, run_id), value, expect: null }
}
