/** Many clients of an event stream, which only count events, so that they hardly affect the measurement. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { answerWith } from '../peer.ts'

/** The beginning of every event's data line; the JSON contains no line breaks. */
const mark = Buffer.from('\ndata: ')

interface Group {
	/** Events that all clients together have yet to receive. */
	missing: number
	done: PromiseWithResolvers<void>
}

const groups = new Map<string, Group>()

/** Opens `clients` streams, and settles when all are open. */
async function open({ url, path, clients }: { url: string; path: string; clients: number }): Promise<void> {
	const group: Group = { missing: 0, done: Promise.withResolvers() }
	groups.set(url, group)
	await Promise.all(Array.from({ length: clients }, () => openOne(group, new URL(path, url))))
}

async function openOne(group: Group, { hostname, port, host, pathname, search }: URL): Promise<void> {
	const socket = connect(Number(port), hostname)
	socket.write(`GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
	let rest: Buffer = Buffer.alloc(0)
	socket.on('data', (bytes: Buffer) => {
		const all = rest.length > 0 ? Buffer.concat([rest, bytes]) : bytes
		let counted = 0
		let at = all.indexOf(mark)
		for (; at >= 0; at = all.indexOf(mark, at + mark.length)) counted++
		// Keeps a partial mark, but never a complete one.
		rest = all.subarray(Math.max(0, all.length - mark.length + 1))
		group.missing -= counted
		if (counted > 0 && group.missing === 0) group.done.resolve()
	})
	await once(socket, 'data')
}

/** Settles when all clients together have received `events` events from now on. */
async function expect({ url, events }: { url: string; events: number }): Promise<void> {
	const group = groups.get(url)
	if (!group) throw new Error(`no streams are open at ${url}`)
	group.missing = events
	group.done = Promise.withResolvers()
	await group.done.promise
}

answerWith({ open, expect })
