/** A reply as one answer, for a request that waits for it. */
import { Fault } from '../../core/errors.ts'
import type { OpenRequest } from '../../core/open-requests.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'
import type { Waiting } from './contract.ts'
import { begin } from './exchange.ts'
import type { Reply } from './exchange.ts'
import type { ChatRequest } from './stream.ts'

/**
 * Waits for as long as the run may take; the run of a client that leaves goes on without it. Throws what `begin` and
 * `Waiting.enter` throw, and why it must not wait any longer.
 */
export async function answer(
	ctx: Pick<Context, 'events' | 'use'>,
	waiting: Waiting,
	{ agent, said, credentials, response }: ChatRequest,
): Promise<Reply> {
	const left = new AbortController()
	const own: OpenRequest<Credentials> = { credentials, end: (why) => left.abort(why) }
	waiting.enter(own)
	const leave = (): void => left.abort(new Fault('stopped', 'the client has left'))
	response.once('close', leave)
	if (response.destroyed) leave()
	try {
		const { reply } = await begin(ctx, agent, said, left.signal)
		return await reply
	} finally {
		waiting.leave(own)
	}
}
