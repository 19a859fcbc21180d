/** Reads values of adapters defensively, since these may be third-party code. */
import { messageOf } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log/log.ts'
import type { ChannelErrorCode, ChatRef, Connection } from '../adapter.ts'

/** A value thrown by an adapter. */
export interface AdapterError {
	/** Without one, the outcome of the call is unknown. */
	code?: ChannelErrorCode
	message: string
	/** 0 if the platform requested no delay. */
	retry_after_ms: number
}

export const errorCodes: ReadonlySet<unknown> = new Set<ChannelErrorCode>(['format', 'limited', 'failed', 'refused'])

/** Accepts any thrown value, even an object whose getters throw. */
export function readAdapterError(thrown: unknown): AdapterError {
	try {
		const { code, retry_after_ms } = Object(thrown) as Record<string, unknown>
		const message = String(messageOf(thrown)).toWellFormed() || 'no reason was given'
		const ms = typeof retry_after_ms === 'number' && retry_after_ms > 0 ? retry_after_ms : 0
		return { ...(errorCodes.has(code) && { code: code as ChannelErrorCode }), message, retry_after_ms: ms }
	} catch {
		return { message: 'the thrown value cannot be read', retry_after_ms: 0 }
	}
}

/** The id of a sent message. */
export function idOf(message: { id: string } | undefined): string {
	if (message === undefined)
		throw new Error('the adapter returned no message: send() and sendFile() must return { id }')
	return String(message.id).slice(0, ID_LIMIT)
}

/** Limits of a platform's id and of a mark, in characters. */
const ID_LIMIT = 256
const MARK_LIMIT = 256
const warned = new WeakSet<Connection>()

/** The result of `Connection.mark`. An invalid one is logged once per connection and ignored. */
export function markOf(connection: Connection, chat: ChatRef, log: Pick<Logger, 'warn'>): string | undefined {
	let mark: unknown
	try {
		mark = connection.mark?.(chat)
		if (mark === undefined || (typeof mark === 'string' && mark.length <= MARK_LIMIT)) return mark
	} catch {}
	if (!warned.has(connection))
		log.warn(`the mark of an adapter is ignored: it must be a string of at most ${MARK_LIMIT} characters`)
	warned.add(connection)
	return undefined
}
