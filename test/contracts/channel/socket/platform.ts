/** The test platform: a server that exchanges lines of JSON, and keeps everything in one log. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { TestPlatform } from '../../channel.ts'
import type { Entry, Reply } from './adapter.ts'

type Fault = 'lost' | 'failed' | 'refused' | 'stalled'

interface Request {
	re: number
	command: 'login' | 'log' | 'put'
	token?: string
	after: number
	chat: string
	text: string
	file?: Entry['file']
}

export async function socketPlatform(): Promise<TestPlatform> {
	const token = 'token-of-the-bot'
	const log: Entry[] = []
	const sockets = new Set<Socket>()
	const bots = new Set<Socket>()
	/** Unanswered requests by socket, since one socket carries several at a time. */
	const open = new Map<Socket, number>()
	let fault: Fault | undefined
	let isSilent = false
	let isValid = true
	let chats = 0

	const server = createServer((socket) => {
		sockets.add(socket)
		socket.on('error', () => {}).on('close', () => [sockets, bots, open].forEach((all) => all.delete(socket)))
		const lines = createInterface(socket).on('error', () => {})
		lines.on('line', (line) => !isSilent && answer(socket, JSON.parse(line) as Request))
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')

	function answer(socket: Socket, request: Request): void {
		open.set(socket, (open.get(socket) ?? 0) + 1)
		const reply = (body: Omit<Reply, 're'>): void => {
			open.set(socket, (open.get(socket) ?? 1) - 1)
			socket.write(`${JSON.stringify({ re: request.re, ...body })}\n`)
		}
		if (request.command === 'login') {
			if (request.token !== token || !isValid)
				return reply({ error: { code: 'refused', message: 'this token is not valid; store another one' } })
			bots.add(socket)
			return reply({ result: log.length })
		}
		if (request.command === 'log') return reply({ result: log.filter(({ number }) => number > request.after) })
		const wrong = fault
		fault = undefined
		if (wrong === 'stalled') return
		if (wrong === 'failed' || wrong === 'refused')
			return reply({ error: { code: wrong, message: `the platform ${wrong} it` } })
		const { chat, text, file } = request
		const number = append({ chat, text, by: 'bot', ...(file && { file }) })
		if (wrong === 'lost') return void socket.destroy()
		reply({ result: number })
	}

	function append(entry: Omit<Entry, 'number'>): number {
		const number = log.push({ ...entry, number: log.length + 1 })
		for (const bot of bots) bot.write(`${JSON.stringify({ entry: log[number - 1] })}\n`)
		return number
	}

	const cut = (): void => sockets.forEach((socket) => socket.destroy())
	const next = (one: Fault) => (): void => void (fault = one)
	return {
		config: { api_root: `lines://127.0.0.1:${(server.address() as AddressInfo).port}` },
		token,
		wrong_token: 'another token',
		chat(kind) {
			if (kind === 'group') return undefined
			const chat = `chat-${++chats}`
			return {
				id: chat,
				kind,
				say: (text) => void append({ chat, text, by: 'person' }),
				attach: () => void append({ chat, text: '', by: 'person', file: { name: 'a.png', bytes: 'AAAA' } }),
				attachFile: (bytes, name) =>
					void append({ chat, text: '', by: 'person', file: { name, bytes: Buffer.from(bytes).toString('base64') } }),
				shown: () =>
					log
						.filter((entry) => entry.chat === chat && entry.by === 'bot')
						.map(({ number, text, file }) => ({
							id: String(number),
							text,
							...(file && { file: { name: file.name, bytes: Buffer.from(file.bytes, 'base64') } }),
						})),
			}
		},
		cut,
		open: () => [...open.values()].reduce((sum, count) => sum + count, sockets.size),
		async close() {
			cut()
			server.close()
			await once(server, 'close')
		},
		next: { lost: next('lost'), failed: next('failed'), refused: next('refused'), stalled: next('stalled') },
		silent: () => void (isSilent = true),
		revoke() {
			isValid = false
			cut()
		},
	}
}
