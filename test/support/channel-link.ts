/** The gateway's side of a channel adapter's connection. It records what the adapter reports. */
import { pino } from 'pino'
import type { ChannelError, IncomingMessage, KnownChat, Link } from '../../plugins/channels/adapter.ts'

export interface TestLink<Config extends object> extends Link<Config> {
	received: IncomingMessage[]
	/** `connected` or `reconnecting`, followed by `: ` and the error if there is one. */
	statuses: string[]
	losses: ChannelError[]
	/** Returned by `chats`; empty by default. */
	known: KnownChat[]
	/** Log lines, as JSON. */
	logged: string[]
	/** Called before a message is accepted; may throw or wait. */
	gate?(message: IncomingMessage): unknown
	abort(): void
}

export function testLink<Config extends object>(token: string, config: Config): TestLink<Config> {
	const ending = new AbortController()
	const link: TestLink<Config> = {
		received: [],
		statuses: [],
		losses: [],
		known: [],
		logged: [],
		channel_id: 'c1',
		token,
		config,
		log: pino({ level: 'debug' }, { write: (line: string) => void link.logged.push(line) }),
		signal: ending.signal,
		abort: () => ending.abort(new Error('ended by the test')),
		cursor: async () => null,
		advance: async () => {},
		chats: async () => link.known,
		async receive(message) {
			await link.gate?.(message)
			link.received.push(message)
		},
		status: (status, error) => void link.statuses.push(error === undefined ? status : `${status}: ${error}`),
		lost: (error) => void link.losses.push(error as ChannelError),
		error: (code, message, fields) => Object.assign(new Error(message, { cause: fields?.cause }), { code, ...fields }),
	}
	return link
}
