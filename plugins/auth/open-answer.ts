/** One answer that a client waits for: whole, or as Server-Sent Events while it is made. */
import { Fault } from '../../core/errors.ts'
import type { Redactor } from '../../core/redactor/redactor.ts'
import { chunk, Connection, turnOf } from '../shared/sse.ts'
import type { Auth, OpenRequest, WaitingRequest } from './contract.ts'

/** Bytes that may wait for a client. The last events come on top: they are small, or what the client asked for. */
const BACKLOG_LIMIT = 1024 * 1024

/** As `Auth.answerWhole`. */
export async function answerWhole<T>(
	{ open, credentials, response }: WaitingRequest,
	work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
	const left = new AbortController()
	const own: OpenRequest = { credentials, end: (why) => left.abort(why) }
	const leave = (): void => left.abort(gone())
	open.enter(own)
	response.once('close', leave)
	if (response.destroyed) leave()
	try {
		return await work(left.signal)
	} finally {
		open.leave(own)
	}
}

/** As `Auth.answerStream`, after the redactor. */
export async function answerStream(
	redactor: Pick<Redactor, 'clearanceOf'>,
	...[{ open, credentials, response }, { heartbeat_s, stall_timeout_s }, begin]: Parameters<Auth['answerStream']>
): Promise<void> {
	const clearance = redactor.clearanceOf(credentials.scope)
	const left = new AbortController()
	let connection: Connection | undefined
	/** Written before the first events are known. */
	const early: (() => string)[] = []
	let quietSince = performance.now()
	/** Written in this turn of the event loop: one write of the socket costs as much as many events. */
	let together = ''
	const take = (): string => {
		const events = together
		together = ''
		return clearance.text(events)
	}
	const send = (): void => {
		if (together !== '' && !response.destroyed) connection?.write(chunk(take()))
	}
	const write = (events: () => string): void => {
		quietSince = performance.now()
		// It stays open after its end until the client has taken that.
		if (response.destroyed || response.writableEnded) return
		if (!connection) early.push(events)
		else if (connection.backlog > BACKLOG_LIMIT) connection.cut()
		else {
			if (together === '') setImmediate(send)
			together += events()
		}
	}
	const end = (last: string): void => {
		if (response.destroyed) return
		together += last
		connection?.whenReady(() => connection?.end(take()))
	}
	const own: OpenRequest = {
		credentials,
		end: (why) => left.abort(why),
		beat(now) {
			if (connection && !connection.full && now - quietSince >= heartbeat_s * 1000) write(() => ': still here\n')
		},
	}
	const close = (): void => {
		open.leave(own)
		// A client that received the whole answer has not left early.
		if (!response.writableFinished) left.abort(gone())
	}

	open.enter(own)
	try {
		const socket = await turnOf(response)
		if (!socket) return close()
		left.signal.throwIfAborted()
		const { first, last } = await begin(left.signal, write)
		if (response.destroyed) return close()
		const head = clearance.text(first + early.map((events) => events()).join(''))
		connection = new Connection(response, socket, head, { stallMs: stall_timeout_s * 1000, closed: close })
		last.then(end, () => connection?.cut())
	} catch (error) {
		close()
		throw error
	}
}

function gone(): Fault {
	return new Fault('stopped', 'the client has left')
}
