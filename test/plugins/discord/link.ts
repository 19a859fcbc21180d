/** The gateway's side of a connection. It records what the adapter reports. */
import { pino } from 'pino'
import { connect } from '../../../plugins/discord/connection.ts'
import type { DiscordConfig } from '../../../plugins/discord/config.ts'
import type { ChannelError, Connection, IncomingMessage, KnownChat, Link } from '../../../plugins/channels/adapter.ts'
import type { DiscordServer } from '../../support/discord.ts'

export interface TestLink extends Link<DiscordConfig> {
	received: IncomingMessage[]
	/** `connected` or `reconnecting`, followed by the error if there is one. */
	statuses: string[]
	losses: ChannelError[]
	known: KnownChat[]
	/** Log lines, as JSON. */
	logged: string[]
	/** Called before a message is accepted; may throw or wait. */
	gate?(message: IncomingMessage): unknown
	abort(): void
}

export function linkTo({ url, token }: Pick<DiscordServer, 'url' | 'token'>): TestLink {
	const ending = new AbortController()
	const link: TestLink = {
		received: [],
		statuses: [],
		losses: [],
		known: [],
		channel_id: 'ch',
		token,
		config: { api_root: url },
		logged: [],
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

export async function open(
	t: { teardown(end: () => unknown): void },
	server: DiscordServer,
	fields: Partial<TestLink> = {},
): Promise<{ link: TestLink; connection: Connection }> {
	const link = Object.assign(linkTo(server), fields)
	const connection = await connect(link)
	t.teardown(() => connection.close())
	return { link, connection }
}
