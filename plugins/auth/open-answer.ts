/** Answers a client that waits: with one response, or with a stream of Server-Sent Events. */
import { Fault } from '../../core/errors.ts'
import type { Redactor } from '../../core/redactor/redactor.ts'
import { chunk, Connection, turnOf } from '../shared/sse.ts'
import type { Auth, OpenRequest, WaitingRequest } from './contract.ts'

/** Limit of unread bytes of a client. The last events do not count: they are small, or what the client asked for. */
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

/** As `Auth.answerStream`, with redacted events. */
export async function answerStream(
	redactor: Pick<Redactor, 'clearanceOf'>,
	...[{ open, credentials, response }, { heartbeat_s, stall_timeout_s }, begin]: Parameters<Auth['answerStream']>
): Promise<void> {
	const clearance = redactor.clearanceOf(credentials.scope)
	const left = new AbortController()
	let connection: Connection | undefined
	/** Events written before the connection is open. */
	const early: (() => string)[] = []
	let quietSince = performance.now()
	/** Events of this turn of the event loop, for one write: a write to the socket costs as much as many events. */
	let pending = ''
	const takePending = (): string => {
		const events = pending
		pending = ''
		return clearance.text(events)
	}
	const send = (): void => {
		if (pending !== '' && !response.destroyed) connection?.write(chunk(takePending()))
	}
	const write = (events: () => string): void => {
		quietSince = performance.now()
		// After its end, the response stays open until the client has read everything.
		if (response.destroyed || response.writableEnded) return
		if (!connection) early.push(events)
		else if (connection.backlog > BACKLOG_LIMIT) connection.cut()
		else {
			if (pending === '') setImmediate(send)
			pending += events()
		}
	}
	const end = (last: string): void => {
		if (response.destroyed) return
		pending += last
		connection?.whenReady(() => connection?.end(takePending()))
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
		// The connection also closes after a complete answer.
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
