import type { Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'

/** Emits an event about something that has already happened. Settles once it is durable, or its error was logged. */
export async function emitOrLog(
	{ emit, log }: Pick<Context, 'emit' | 'log'>,
	event: NewEvent,
	agent?: string,
): Promise<void> {
	await emit(event, agent).catch((error: unknown) =>
		log.error({ err: error, event_type: event.event_type }, 'an event could not be stored'),
	)
}
