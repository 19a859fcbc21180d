/** The platform for the tests: a server in this process that speaks its protocol and can fail like a real one. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import type { TestPlatform } from 'svc-gateway/testing'

interface Update {
	id: string
	chat: { id: string; kind: 'private' }
	sender: { id: string; name: string }
	text: string
}

interface Message {
	id: string
	chat: string
	text: string
	nonce: string
}

type Fault = 'lost' | 'limited' | 'failed' | 'refused' | 'stalled'

const answers: Partial<Record<Fault, [status: number, body: object]>> = {
	limited: [429, { message: 'too many messages', retry_after_ms: 50 }],
	failed: [409, { message: 'the chat is locked' }],
	refused: [403, { message: 'the chat is gone' }],
}

export async function startPlatform(): Promise<TestPlatform> {
	const token = 'token-of-the-bot'
	const updates: Update[] = []
	const messages: Message[] = []
	const open = new Set<ServerResponse>()
	const waiting = new Set<() => void>()
	let fault: Fault | undefined
	let isValid = true
	let isSilent = false
	let chats = 0

	const server = createServer((request, response) => {
		open.add(response)
		response.once('close', () => open.delete(response))
		answer(request, response).catch(() => response.destroy())
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')

	async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
		const say = (status: number, body: object): void => {
			response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
		}
		const isKnown = (): boolean => isValid && request.headers.authorization === `Bearer ${token}`
		if (isSilent) return
		if (!isKnown()) return say(401, {})
		const { pathname, searchParams } = new URL(request.url ?? '', 'http://platform')
		if (pathname === '/me') return say(200, { name: '@bot' })
		if (pathname === '/updates') {
			const after = Number(searchParams.get('after') ?? updates.length)
			if (searchParams.has('after') && updates.length <= after) await arrival(response)
			if (!isKnown()) return say(401, {})
			return say(200, { updates: updates.slice(after), cursor: String(updates.length) })
		}
		const { chat, text, nonce } = (await json(request)) as Message
		const wrong = fault
		fault = undefined
		if (wrong === 'stalled') return
		const refusal = wrong && answers[wrong]
		if (refusal) return say(...refusal)
		const known = messages.find((one) => one.nonce === nonce)
		const message = known ?? { id: String(messages.length + 1), chat, text, nonce }
		if (!known) messages.push(message)
		if (wrong === 'lost') return void response.destroy()
		say(200, { id: message.id })
	}

	/** Settles when somebody sends a message, the request ends, or a minute has passed. */
	function arrival(response: ServerResponse): Promise<void> {
		return new Promise((resolve) => {
			const wake = (): void => {
				waiting.delete(wake)
				resolve()
			}
			waiting.add(wake)
			response.once('close', wake)
			setTimeout(wake, 60_000).unref()
		})
	}

	return {
		config: { api_root: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
		token,
		wrong_token: 'token-of-nobody',
		chat(kind) {
			if (kind === 'group') return undefined
			const id = `chat-${++chats}`
			return {
				id,
				kind,
				say(text) {
					updates.push({
						id: String(updates.length + 1),
						chat: { id, kind },
						sender: { id: 'ann', name: 'Ann' },
						text,
					})
					for (const wake of waiting) wake()
				},
				shown: () => messages.filter((one) => one.chat === id).map((one) => ({ id: one.id, text: one.text })),
			}
		},
		cut: () => server.closeAllConnections(),
		open: () => open.size,
		close: () =>
			new Promise((resolve) => {
				server.close(() => resolve())
				server.closeAllConnections()
			}),
		next: {
			lost: () => void (fault = 'lost'),
			limited: () => void (fault = 'limited'),
			failed: () => void (fault = 'failed'),
			refused: () => void (fault = 'refused'),
			stalled: () => void (fault = 'stalled'),
		},
		silent: () => void (isSilent = true),
		revoke() {
			isValid = false
			for (const wake of waiting) wake()
		},
	}
}
