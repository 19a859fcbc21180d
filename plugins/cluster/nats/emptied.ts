/**
 * Detects that someone removed the messages of a stream, as `nats stream purge` does. Without the log, runs in progress would
 * repeat their steps; without the state, a new installation would start on the log of another one.
 */
import type { Fault } from '../../../core/errors.ts'
import type { Store } from '../../../core/store/ports.ts'
import { unreachable } from './client.ts'
import type { Client } from './client.ts'
import { infoOf } from './streams.ts'
import type { Names } from './streams.ts'

/** Written while the log has messages, so that a later start detects that they are gone. */
interface LogMark {
	/** The messages were removed. Stays true when new messages are added. */
	emptied: boolean
}

const markKey = ['meta', 'log'] as const

export function emptied(name: string, { state, events }: Names): Fault {
	return unreachable(
		`the messages of the stream ${name} were removed from the cluster: restore copies of ${state} and ${events} ` +
			'(nats stream restore); to begin without any data, remove both streams',
	)
}

/** The reason why the gateway must not start, or null. `log`: whether the log has events; `state`: whether the state has the format mark. */
export async function emptiedBefore(
	internal: Store,
	names: Names,
	has: { log: boolean; state: boolean },
): Promise<Fault | null> {
	if (has.log && !has.state) return emptied(names.state, names)
	const mark = (await internal.get<LogMark>(markKey))?.value
	return mark && (mark.emptied || !has.log) ? emptied(names.events, names) : null
}

/**
 * Call the returned check regularly. It settles with the reason why the gateway must stop, or null. `kept`: the position of a
 * message of the log that the gateway itself never removes; 0 if the log has no such message yet.
 */
export function watchLog(client: Client, names: Names, internal: Store, kept: () => number) {
	let isMarked = false
	const mark = async (isEmptied: boolean): Promise<void> => void (await internal.put(markKey, { emptied: isEmptied }))
	return async (): Promise<Fault | null> => {
		const { first_seq } = (await infoOf(client, names.events)).state
		if (kept() === 0) return null
		if (first_seq > kept()) {
			await mark(true)
			return emptied(names.events, names)
		}
		if (!isMarked && (await internal.get(markKey)) === undefined) await mark(false)
		isMarked = true
		return null
	}
}
