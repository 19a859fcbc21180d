/** One answer that a client waits for: whole, or as Server-Sent Events while it is made. */
import type { ServerResponse } from 'node:http'
import { Fault } from '../errors.ts'
import type { Clearance } from '../redactor/redactor.ts'
import { chunk, Connection, turnOf } from './sse.ts'

/** A request while it is open. */
interface OpenRequest<Who> {
	readonly credentials: Who
	/** It must leave. */
	end(why: Fault): void
	/** Twice a second; `now` by the clock of `performance.now`. */
	beat?(now: number): void
}

export interface WaitingRequest<Who> {
	/** Where it is counted, and ended with its caller's authority. `enter` throws if it may not be open. */
	open: { enter(one: OpenRequest<Who>): void; leave(one: OpenRequest<Who>): void }
	credentials: Who
	/** Not begun yet. */
	response: ServerResponse
}

export interface StreamOptions {
	/** Milliseconds without an event after which the client gets a comment, for proxies that cut idle connections. */
	heartbeatMs: number
	/** Milliseconds for which the client may take nothing of what waits for it, before it is cut off. */
	stallMs: number
	/** Whether the client may see the names of secrets. */
	clearance: Pick<Clearance, 'text'>
}

export interface BegunStream {
	/** Whole events, which come first. */
	first: string
	/** Whole events, after which the stream ends. A rejection cuts it off. */
	last: Promise<string>
}

/** Bytes that may wait for a client. The last events come on top: they are small, or what the client asked for. */
const BACKLOG_LIMIT = 1024 * 1024

/** Does `work`; `signal` aborts when the client leaves or must leave. Throws what `work` and `enter` throw. */
export async function answerWhole<Who, T>(
	{ open, credentials, response }: WaitingRequest<Who>,
	work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
	const left = new AbortController()
	const own: OpenRequest<Who> = { credentials, end: (why) => left.abort(why) }
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

/**
 * Streams what `begin` writes: each call makes whole events, after the first ones. A client that lets more than 1 MiB wait
 * is cut off. The response belongs to the stream from now on, unless this throws. Settles once the stream is open, or its
 * client has left: then nothing is begun. Throws what `begin` and `enter` throw.
 */
export async function answerStream<Who>(
	{ open, credentials, response }: WaitingRequest<Who>,
	{ heartbeatMs, stallMs, clearance }: StreamOptions,
	begin: (signal: AbortSignal, write: (events: () => string) => void) => Promise<BegunStream>,
): Promise<void> {
	const left = new AbortController()
	let connection: Connection | undefined
	/** Written before the first events are known. */
	const early: (() => string)[] = []
	let quietSince = performance.now()
	const send = (events: string): void => connection?.write(chunk(clearance.text(events)))
	const write = (events: () => string): void => {
		quietSince = performance.now()
		if (response.destroyed) return
		if (!connection) early.push(events)
		else if (connection.backlog > BACKLOG_LIMIT) connection.cut()
		else send(events())
	}
	const end = (last: string): void => {
		if (response.destroyed) return
		send(last)
		connection?.whenReady(() => connection?.end())
	}
	const own: OpenRequest<Who> = {
		credentials,
		end: (why) => left.abort(why),
		beat(now) {
			if (connection && !connection.full && now - quietSince >= heartbeatMs) write(() => ': still here\n')
		},
	}
	const close = (): void => {
		left.abort(gone())
		open.leave(own)
	}

	open.enter(own)
	try {
		const socket = await turnOf(response)
		if (!socket) return close()
		left.signal.throwIfAborted()
		const { first, last } = await begin(left.signal, write)
		if (response.destroyed) return close()
		const head = clearance.text(first + early.map((events) => events()).join(''))
		connection = new Connection(response, socket, head, { stallMs, closed: close })
		last.then(end, () => connection?.cut())
	} catch (error) {
		close()
		throw error
	}
}

function gone(): Fault {
	return new Fault('stopped', 'the client has left')
}
