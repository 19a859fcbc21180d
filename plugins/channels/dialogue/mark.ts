import type { Logger } from '../../../core/log.ts'
import type { ChatRef, Connection } from '../adapter.ts'

const LENGTH_LIMIT = 256
const told = new WeakSet<Connection>()

/** `Connection.mark`; undefined also where it cannot be kept: what is none is left out, and the log says so once. */
export function markOf(connection: Connection, chat: ChatRef, log: Pick<Logger, 'warn'>): string | undefined {
	let mark: unknown
	try {
		mark = connection.mark?.(chat)
		if (mark === undefined || (typeof mark === 'string' && mark.length <= LENGTH_LIMIT)) return mark
	} catch {}
	if (!told.has(connection))
		log.warn(`an adapter's mark is left out: it must be a string of ${LENGTH_LIMIT} characters at most`)
	told.add(connection)
	return undefined
}
