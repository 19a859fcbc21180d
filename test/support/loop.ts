/** A chat platform in the test's process; its adapter is the plugin in test/fixtures/channels/loop. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Connection, IncomingMessage, Link, OutgoingMessage } from '../../plugins/channels/adapter.ts'
import type { Answer, TestGateway } from './gateway.ts'
import { eventually } from './wait.ts'

/**
 * The outcome of an attempt to connect. `fail`: an error. `refuse`: the platform refuses. `hang`: no outcome until the attempt is
 * aborted. A function: its result or error.
 */
export type Act = 'fail' | 'refuse' | 'hang' | ((link: Link) => unknown)

export interface LoopConnection {
	link: Link
	token: string
	closed: boolean
	/** Sends a message of a person in a private chat. `more`: other fields of the message. */
	say(chat_id: string, text: string, more?: Partial<IncomingMessage>): Promise<void>
}

export interface Loop {
	/** Sets the outcomes of the next attempts with this token; later attempts succeed. */
	script(token: string, ...acts: Act[]): void
	/** The number of attempts to connect. */
	attempts(token: string): number
	/** All connections so far, oldest first. */
	connections(token: string): LoopConnection[]
	/** Waits for the nth connection with this token. */
	connected(token: string, n?: number): Promise<LoopConnection>
	sent: (OutgoingMessage & { token: string })[]
	/** How long `close` takes, in milliseconds, by token. */
	closeTakes: Map<string, number>
	connect(link: Link): Promise<Connection>
}

/** The files of a home with the adapter as plugin `name`, for channels of the type `name`. */
export function loopFiles(name = 'loop'): Record<string, string> {
	const text = readFileSync(new URL('../fixtures/channels/loop/index.js', import.meta.url), 'utf8')
	const renamed = text.replaceAll("'loop'", `'${name}'`).replaceAll('loop_alias', `${name}_alias`)
	return { [`plugins/${name}/index.js`]: renamed }
}

/** One for the whole process: tokens distinguish its channels. */
export function openLoop(): Loop {
	const acts = new Map<string, Act[]>()
	const attempts = new Map<string, number>()
	const connections: LoopConnection[] = []
	let said = 0
	const loop: Loop = {
		script: (token, ...next) => void acts.set(token, next),
		attempts: (token) => attempts.get(token) ?? 0,
		connections: (token) => connections.filter((one) => one.token === token),
		async connected(token, n = 1) {
			await eventually(
				() => loop.connections(token).length,
				(count) => count >= n,
			)
			return loop.connections(token)[n - 1] as LoopConnection
		},
		sent: [],
		closeTakes: new Map(),
		async connect(link) {
			const { token } = link
			attempts.set(token, loop.attempts(token) + 1)
			const act = acts.get(token)?.shift()
			if (act === 'fail') throw new Error(`no route to the loop with ${token}`)
			if (act === 'refuse') throw link.error('refused', 'the loop does not know this token; make another')
			if (act === 'hang')
				await new Promise((_, reject) => link.signal.addEventListener('abort', () => reject(new Error('given up'))))
			if (typeof act === 'function') return (await act(link)) as Connection
			const connection: LoopConnection = {
				link,
				token,
				closed: false,
				say: (chat_id, text, more) =>
					link.receive({
						id: `m${++said}`,
						chat: { id: chat_id, kind: 'private' },
						sender: { id: 'someone', name: 'Some One' },
						text,
						addressed: true,
						...more,
					}),
			}
			connections.push(connection)
			return {
				name: `@bot_${token.slice(0, 4)}`,
				async send(message) {
					loop.sent.push({ ...message, token })
					return { id: `s${loop.sent.length}` }
				},
				async close() {
					const ms = loop.closeTakes.get(token) ?? 0
					if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
					connection.closed = true
				},
			}
		},
	}
	;(globalThis as Record<symbol, unknown>)[Symbol.for('svc.test.loop')] = loop
	return loop
}

/** Stores a bot token and adds a channel with it. Returns the channel's id. */
export async function addChannel(
	gateway: Pick<TestGateway, 'request'>,
	token: string,
	{ type = 'loop', config = {} }: { type?: string; config?: Record<string, unknown> } = {},
): Promise<string> {
	// Must not contain the token, which the redactor would remove from the reference.
	const name = secretOf(token)
	await gateway.request('POST', '/v1/vault/secrets', { body: { name, value: token, policy_label: 'channel' } })
	const { status, body } = await gateway.request('POST', '/v1/channels', {
		body: { type, bot_token_ref: name, config },
	})
	if (status !== 201) throw new Error(`the channel was refused: ${status} ${JSON.stringify(body)}`)
	return body.id
}

/** The name of the secret that `addChannel` creates for a token. */
export function secretOf(token: string): string {
	return `TOKEN_${createHash('sha256').update(token).digest('hex').slice(0, 12)}`
}

/** Waits until a channel has this connection state. */
export function waitForConnection(
	gateway: Pick<TestGateway, 'request'>,
	id: string,
	connection: string,
): Promise<Answer> {
	return eventually(
		async () => (await gateway.request('GET', `/v1/channels/${id}`)).body,
		(channel) => channel.connection === connection,
	)
}

/** Sends `/start` in a chat, and returns the pairing code from the bot's answer. */
export async function codeFor(loop: Loop, connection: LoopConnection, chat_id: string): Promise<string> {
	const codes = (): string[] =>
		loop.sent
			.filter((one) => one.token === connection.token && one.chat.id === chat_id)
			.flatMap((one) => /^[0-9A-HJKMNP-TV-Z]{8}$/m.exec(one.text)?.[0] ?? [])
	const before = codes().length
	await connection.say(chat_id, '/start')
	return (await eventually(codes, (found) => found.length > before)).at(-1) ?? ''
}
