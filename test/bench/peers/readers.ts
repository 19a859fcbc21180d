/** Many clients of an event stream, which only count events, so that they cost little of what is measured. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { answerWith } from '../peer.ts'

/** How every event's line begins in the bytes; its JSON has no line break. */
const mark = Buffer.from('\ndata: ')

interface Group {
	/** Events still to come, of all clients. */
	missing: number
	done: PromiseWithResolvers<void>
}

const groups = new Map<string, Group>()

/** Opens `clients` streams and settles when all are live. */
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
		// Part of a mark may have come; a whole one is too long to stay.
		rest = all.subarray(Math.max(0, all.length - mark.length + 1))
		group.missing -= counted
		if (counted > 0 && group.missing === 0) group.done.resolve()
	})
	await once(socket, 'data')
}

/** From now on: settles when every client has got `events`. */
async function expect({ url, events }: { url: string; events: number }): Promise<void> {
	const group = groups.get(url)
	if (!group) throw new Error(`no streams are open at ${url}`)
	group.missing = events
	group.done = Promise.withResolvers()
	await group.done.promise
}

answerWith({ open, expect })
