/** An adapter for a platform with a single socket: lines of JSON in both directions, no nonces, and no positions in its feed. */
import { once } from 'node:events'
import { connect as open } from 'node:net'
import { createInterface } from 'node:readline'
import type {
	ChannelAdapter,
	ChannelErrorCode,
	ChatRef,
	Connection,
	IncomingMessage,
	Link,
	OutgoingMessage,
} from '../../../../plugins/channels/adapter.ts'

/** A message as the platform sends it. Its number is the position in the platform's log. */
export interface Entry {
	number: number
	chat: string
	text: string
	by: 'bot' | 'person'
	/** `bytes`: Base64. */
	file?: { name: string; bytes: string }
}

export interface Reply {
	re: number
	result?: unknown
	error?: { code?: ChannelErrorCode; message: string }
}

interface Waiting {
	resolve(result: unknown): void
	reject(error: Error): void
}

export const adapter: ChannelAdapter<{ api_root: string }> = {
	type: 'one_socket',
	label: 'One socket',
	schemes: ['lines'],
	can: { formats: [{ markup: 'plain', max_length: 500 }], files: { max_bytes: 100_000 } },
	config: (joi) => joi.object({ api_root: joi.string().required() }),
	connect,
}

async function connect(link: Link<{ api_root: string }>): Promise<Connection> {
	const { hostname, port } = new URL(link.config.api_root)
	const waiting = new Map<number, Waiting>()
	const early: Entry[] = []
	let isReady = false
	let newest = 0
	let requests = 0
	let received: Promise<unknown> = Promise.resolve()

	const socket = open(Number(port), hostname)
	const end = (): void => void socket.destroy()
	link.signal.addEventListener('abort', end)
	socket
		.on('error', () => {})
		.on('close', () => {
			const error = new Error('the platform closed the connection')
			for (const one of waiting.values()) one.reject(error)
			waiting.clear()
			if (isReady) link.lost(error)
		})
	const lines = createInterface(socket).on('error', () => {})
	lines.on('line', (line) => {
		const said = JSON.parse(line) as Reply | { entry: Entry }
		if (!('entry' in said)) return settle(said)
		if (isReady) received = received.then(() => receive(said.entry)).catch((error: unknown) => link.lost(error))
		else early.push(said.entry)
	})

	function settle({ re, result, error }: Reply): void {
		const one = waiting.get(re)
		waiting.delete(re)
		if (!error) one?.resolve(result)
		else one?.reject(error.code ? link.error(error.code, error.message) : new Error(error.message))
	}

	function call<T>(command: string, more: object = {}): Promise<T> {
		if (socket.destroyed) return Promise.reject(new Error('the platform closed the connection'))
		return new Promise<unknown>((resolve, reject) => {
			waiting.set(++requests, { resolve, reject })
			socket.write(`${JSON.stringify({ re: requests, command, ...more })}\n`)
		}) as Promise<T>
	}

	async function receive({ number, chat, text, by, file }: Entry): Promise<void> {
		newest = Math.max(newest, number)
		if (by === 'bot') return
		const message: IncomingMessage = {
			id: String(number),
			chat: { id: chat, kind: 'private' },
			sender: { id: 'ann' },
			text,
			addressed: true,
			...(file && { attachments: [{ what: 'a file', name: file.name, ref: String(number) }] }),
		}
		await link.receive(message)
	}

	/** The bot's messages after a mark. */
	async function after({ id }: ChatRef, mark: string | undefined): Promise<Entry[]> {
		const entries = await call<Entry[]>('log', { after: Number(mark ?? 0) })
		return entries.filter((entry) => entry.by === 'bot' && entry.chat === id)
	}

	async function put(entry: Omit<Entry, 'number' | 'by'>): Promise<{ id: string }> {
		const number = await call<number>('put', entry)
		newest = Math.max(newest, number)
		return { id: String(number) }
	}

	const idOf = (entry: Entry | undefined): { id: string } | undefined => entry && { id: String(entry.number) }
	try {
		await once(socket, 'connect', { signal: link.signal })
		newest = await call<number>('login', { token: link.token })
		const since = await link.cursor()
		if (since === null) await link.advance(String(newest))
		const known = await link.chats()
		// A chat that chats() does not list was first used after the first connection.
		const from = (chat: string): number => Number(known.find(({ id }) => id === chat)?.last_id ?? since)
		if (since !== null)
			for (const entry of await call<Entry[]>('log', { after: Number(since) }))
				if (entry.number > from(entry.chat)) await receive(entry)
		isReady = true
		for (const entry of early)
			received = received.then(() => receive(entry)).catch((error: unknown) => link.lost(error))
	} catch (error) {
		socket.destroy()
		throw error
	}

	return {
		name: '@bot',
		mark: () => String(newest),
		send: ({ chat, text }) => put({ chat: chat.id, text }),
		find: async ({ chat, text }: OutgoingMessage, mark) =>
			idOf((await after(chat, mark)).find((entry) => entry.text === text && entry.file === undefined)),
		sendFile: ({ chat, name }, bytes) =>
			put({ chat: chat.id, text: '', file: { name, bytes: Buffer.from(bytes).toString('base64') } }),
		async findFile({ chat, size }, mark) {
			const found = (await after(chat, mark)).find(
				({ file }) => file && Buffer.from(file.bytes, 'base64').length === size,
			)
			newest = Math.max(newest, found?.number ?? 0)
			return idOf(found)
		},
		async load(ref, { signal, max_bytes }) {
			signal.throwIfAborted()
			const [entry] = await call<Entry[]>('log', { after: Number(ref) - 1 })
			const bytes = Buffer.from(entry?.file?.bytes ?? '', 'base64')
			if (bytes.length > max_bytes) throw new Error('the file is too large')
			return bytes
		},
		async close() {
			isReady = false
			link.signal.removeEventListener('abort', end)
			socket.destroy()
			lines.close()
			await received
		},
	}
}
