import type { Logger } from '../../../core/log/log.ts'
import type { ChatRef, Connection } from '../adapter.ts'

const LENGTH_LIMIT = 256
const warned = new WeakSet<Connection>()

/** The result of `Connection.mark`. An invalid one is logged once per connection and ignored. */
export function markOf(connection: Connection, chat: ChatRef, log: Pick<Logger, 'warn'>): string | undefined {
	let mark: unknown
	try {
		mark = connection.mark?.(chat)
		if (mark === undefined || (typeof mark === 'string' && mark.length <= LENGTH_LIMIT)) return mark
	} catch {}
	if (!warned.has(connection))
		log.warn(`the mark of an adapter is ignored: it must be a string of at most ${LENGTH_LIMIT} characters`)
	warned.add(connection)
	return undefined
}
