/**
 * Receives messages: polls `/sync` with the position at which the last response ended. This position is the channel's cursor. The
 * gateway stores it together with the messages, so no message is lost, however the connection ends.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type {
	ChannelError,
	IncomingFile,
	IncomingMessage,
	Link,
	QuotedMessage,
} from '../../plugins/channels/adapter.ts'
import { orElse } from './homeserver.ts'
import type { Call } from './homeserver.ts'
import type { Config } from './index.ts'

interface Bot {
	user_id: string
	displayname: string | undefined
}

const POLL_MS = 30_000
/** Limit of pages of 100 events per room that are read for the time in which the gateway was not connected. */
const MAX_PAGES = 20
const MAX_FAILURES = 3
/** Limit of rooms whose members are cached. */
const MAX_ROOMS = 500
const TYPES = ['m.room.message', 'm.room.encrypted', 'm.room.member']
const NONE = { not_types: ['*'] }
const ROOM_FILTER = { timeline: { types: TYPES, limit: 50 }, state: NONE, ephemeral: NONE, account_data: NONE }
const FILTER = JSON.stringify({ room: ROOM_FILTER, presence: NONE, account_data: NONE })

/** Determines the first position. The returned function reads messages until the signal aborts or it has called `lost`. */
export async function openFeed(
	link: Link<Config>,
	call: Call,
	signal: AbortSignal,
	bot: Bot,
): Promise<() => Promise<void>> {
	const members = new Map<string, Members>()
	const cursor = await link.cursor()
	let since = cursor ?? ''
	if (cursor === null) {
		// The first connection ever: earlier messages are not for the bot, but pending invitations are.
		const { rooms, next_batch } = await sync('', 0)
		await acceptInvites(rooms)
		since = next_batch
		await link.advance(since)
	}

	return async () => {
		try {
			while (!signal.aborted) {
				const batch = await retrying(() => sync(since, POLL_MS))
				await receive(batch)
				since = batch.next_batch
			}
		} catch (error) {
			// The gateway closes this connection and opens another one, with increasing delays. The cursor was not advanced, so
			// messages that were not received arrive again.
			if (!signal.aborted) link.lost(error)
		}
	}

	/** Retries after a lost connection. Throws errors that persist or that only a person can fix. */
	async function retrying<T>(ask: () => Promise<T>): Promise<T> {
		for (let failures = 0; ;) {
			try {
				const answer = await ask()
				if (failures > 0) link.status('connected')
				return answer
			} catch (thrown) {
				const error = thrown as Partial<ChannelError>
				if (signal.aborted || error.code === 'refused' || ++failures > MAX_FAILURES) throw thrown
				link.status('reconnecting', error.message)
				await sleep(error.retry_after_ms ?? 25 * 4 ** failures, undefined, { signal })
			}
		}
	}

	function sync(from: string, timeout: number): Promise<Sync> {
		const query = { filter: FILTER, timeout: String(timeout), ...(from !== '' && { since: from }) }
		return call('GET', ['sync'], { query, wait_ms: timeout + 15_000 })
	}

	async function acceptInvites(rooms: Sync['rooms']): Promise<void> {
		if (link.config.accept_invites === 'none') return
		for (const room_id of Object.keys(rooms?.invite ?? {})) {
			await call('POST', ['join', room_id], { body: {} }).catch(orElse(undefined)) // the invitation was withdrawn
		}
	}

	async function receive({ rooms, next_batch }: Sync): Promise<void> {
		await acceptInvites(rooms)
		const messages: IncomingMessage[] = []
		for (const [room_id, { timeline }] of Object.entries(rooms?.join ?? {})) {
			const events = await newIn(room_id, timeline ?? { events: [] })
			if (events.some((event) => event.type === 'm.room.member')) members.delete(room_id)
			for (const event of events) messages.push(...(await read(room_id, event)))
		}
		// Only the last message advances the cursor: if one cannot be received, or the gateway is killed, all of them arrive again,
		// and the gateway ignores those that it already has.
		const last = messages.at(-1)
		for (const message of messages) await link.receive({ ...message, cursor: message === last ? next_batch : since })
		if (!last) await link.advance(next_batch)
	}

	/** All events of a room since the last sync, oldest first, but none from before the bot was invited. */
	async function newIn(room_id: string, { events, limited, prev_batch }: Timeline): Promise<MatrixEvent[]> {
		let from = limited ? prev_batch : undefined
		for (let page = 0; from !== undefined && page < MAX_PAGES && !events.some(isArrival); page++) {
			const query = { dir: 'b', limit: '100', filter: JSON.stringify({ types: TYPES }), from, to: since }
			const older = await call<{ chunk: MatrixEvent[]; end?: string }>('GET', ['rooms', room_id, 'messages'], { query })
			events = [...older.chunk.toReversed(), ...events]
			from = older.end
		}
		return events.slice(events.findLastIndex(isArrival) + 1)
	}

	/** Whether the bot was invited, or joined without an invitation. A change of the bot's own name also has the membership `join`. */
	function isArrival({ type, state_key, content, unsigned }: MatrixEvent): boolean {
		if (type !== 'm.room.member' || state_key !== bot.user_id) return false
		const before = unsigned?.prev_content?.membership ?? 'leave'
		return content.membership === 'invite' || (content.membership === 'join' && before === 'leave')
	}

	/** Converts an event to a message; empty if it is none. People may write anything into an event, so all used fields are checked. */
	async function read(room_id: string, { type, content, event_id, sender }: MatrixEvent): Promise<IncomingMessage[]> {
		const relation = content['m.relates_to']
		const kind = type === 'm.room.encrypted' ? type : content.msgtype
		if (sender === bot.user_id || relation?.rel_type === 'm.replace' || ![room_id, event_id, sender].every(isId))
			return []
		const attachment = attachments.get(kind)
		if (attachment === undefined && kind !== 'm.text' && kind !== 'm.emote') return [] // such as a bot's m.notice
		const text = attachment === undefined && typeof content.body === 'string' ? content.body : ''

		const file = attachment === undefined ? undefined : fileIn(content, attachment)

		const people = await membersOf(room_id)
		const isPrivate = Object.keys(people).length === 2
		const mentioned = content['m.mentions']?.user_ids
		const replied_to = relation?.is_falling_back === true ? undefined : relation?.['m.in_reply_to']?.event_id
		const quoted = isId(replied_to) ? await quotedIn(room_id, replied_to, people) : undefined
		const addressed =
			isPrivate ||
			(Array.isArray(mentioned) ? mentioned.includes(bot.user_id) : text.includes(bot.user_id)) ||
			quoted?.own === true
		const thread_id = relation?.rel_type === 'm.thread' ? relation.event_id : undefined
		const name = people[sender]?.display_name
		return [
			{
				id: event_id,
				chat: { id: room_id, kind: isPrivate ? 'private' : 'group', ...(isId(thread_id) && { thread_id }) },
				sender: { id: sender, ...(typeof name === 'string' && { name }) },
				text: withoutName(text, [bot.user_id, bot.displayname ?? bot.user_id]),
				addressed,
				...(attachment !== undefined && { attachment }),
				...(file && { attachments: [file] }),
				...(quoted && { quoted }),
			},
		]
	}

	async function membersOf(room_id: string): Promise<Members> {
		const known = members.get(room_id)
		if (known) return known
		const answer = call<{ joined: Members }>('GET', ['rooms', room_id, 'joined_members'])
		const { joined } = await answer.catch(orElse({ joined: {} })) // the bot was removed meanwhile
		if (members.size >= MAX_ROOMS) members.clear()
		members.set(room_id, joined)
		return joined
	}

	/** The message to which another message replies. Undefined if it does not exist, or the bot may not read it. */
	async function quotedIn(room_id: string, event_id: string, people: Members): Promise<QuotedMessage | undefined> {
		const answer = call<MatrixEvent>('GET', ['rooms', room_id, 'event', event_id])
		const event = await answer.catch(orElse(undefined))
		// Homeservers look in the room of the path; one that does not must not reveal another room to this one.
		if (!event || (event.room_id ?? room_id) !== room_id) return undefined
		const { type, content, sender } = event
		const fileKind = attachments.get(type === 'm.room.encrypted' ? type : content.msgtype)
		const text = fileKind !== undefined ? `[${fileKind}]` : typeof content.body === 'string' ? content.body : ''
		const name = people[sender]?.display_name
		return { text, ...(typeof name === 'string' && { sender: name }), own: sender === bot.user_id }
	}
}

const attachments = new Map<unknown, string>([
	['m.image', 'an image'],
	['m.audio', 'a recording'],
	['m.video', 'a video'],
	['m.file', 'a file'],
	['m.room.encrypted', 'an encrypted message'],
])

/** The file of an event. Undefined in an encrypted room, whose files the bot cannot read. */
function fileIn({ url, body, info }: MatrixEvent['content'], what: string): IncomingFile | undefined {
	if (typeof url !== 'string' || !/^mxc:\/\/[^/]+\/[^/]{1,255}$/.test(url)) return undefined
	const { mimetype, size, duration } = info ?? {}
	return {
		what,
		ref: url,
		...(typeof body === 'string' && body !== '' && { name: body }),
		...(typeof mimetype === 'string' && { media_type: mimetype }),
		...(Number.isInteger(size) && { size: size as number }),
		...(Number.isInteger(duration) && { seconds: Math.round((duration as number) / 1000) }),
	}
}

/** Removes the bot's name from the start: `Bot: what is new?` becomes `what is new?`, but `Bottom up` stays. */
function withoutName(text: string, names: string[]): string {
	const name = names.find((name) => text.startsWith(name) && /^(?:[:,\s]|$)/.test(text.slice(name.length)))
	return name === undefined ? text : text.slice(name.length).replace(/^[:,]?\s*/, '')
}

/** Whether the value is an id as the contract requires it. The ids in an event may be anything. */
function isId(value: unknown): value is string {
	return typeof value === 'string' && /^[!-~]{1,128}$/.test(value)
}

// The used parts of a homeserver's responses.

type Members = Record<string, { display_name?: unknown }>

interface Sync {
	next_batch: string
	rooms?: { join?: Record<string, { timeline?: Timeline }>; invite?: object }
}

interface Timeline {
	events: MatrixEvent[]
	/** Whether earlier events were omitted. */
	limited?: boolean
	prev_batch?: string
}

interface MatrixEvent {
	type: string
	event_id: string
	/** Absent in `/sync`. */
	room_id?: string
	sender: string
	state_key?: string
	content: {
		membership?: unknown
		msgtype?: unknown
		body?: unknown
		url?: unknown
		info?: { mimetype?: unknown; size?: unknown; duration?: unknown } | null
		'm.mentions'?: { user_ids?: unknown } | null
		'm.relates_to'?: Relation | null
	}
	unsigned?: { prev_content?: { membership?: string } }
}

interface Relation {
	rel_type?: unknown
	event_id?: unknown
	is_falling_back?: unknown
	'm.in_reply_to'?: { event_id?: unknown } | null
}
