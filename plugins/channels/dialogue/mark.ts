import type { Logger } from '../../../core/log/log.ts'
import type { ChatRef, Connection } from '../adapter.ts'

const LENGTH_LIMIT = 256
const warned = new WeakSet<Connection>()

/** `Connection.mark`; undefined also if it is invalid, which is logged once. */
export function markOf(connection: Connection, chat: ChatRef, log: Pick<Logger, 'warn'>): string | undefined {
	let mark: unknown
	try {
		mark = connection.mark?.(chat)
		if (mark === undefined || (typeof mark === 'string' && mark.length <= LENGTH_LIMIT)) return mark
	} catch {}
	if (!warned.has(connection))
		log.warn(`an adapter's mark is ignored: it must be a string of ${LENGTH_LIMIT} characters at most`)
	warned.add(connection)
	return undefined
}
