import { platformOf } from './find.ts'
import type { ChannelDetails } from '../contract.ts'
import { CliError } from '../../../core/cli/contract.ts'
import type { Style } from '../../../core/cli/contract.ts'

/** A channel with its connection, its settings and its chats, for people. */
export function details(one: ChannelDetails, style: Style): string {
	const colour = { connected: style.good, error: style.bad }[one.connection as string] ?? style.warn
	const fields = style.fields([
		['id', one.id],
		['platform', platformOf(one.type)],
		['connection', colour(one.connection)],
		['bot', one.bot && style.plain(one.bot)],
		['last error', one.last_error && style.plain(one.last_error)],
		['token', one.bot_token_ref],
		['settings', Object.keys(one.config).length === 0 ? '-' : style.plain(JSON.stringify(one.config))],
		['chats', one.bindings.length],
	])
	if (one.bindings.length === 0) return fields
	const rows = one.bindings.map((chat) => [chat.external_chat_id, chat.agent_id, chat.binding_id])
	return `${fields}\n\n${style.table(['chat', 'agent', 'binding'], rows)}`
}

/** Throws a `CliError` that says why a channel is not connected. `done`: what the command did. */
export function mustWork({ connection, last_error, id }: ChannelDetails, done: 'created' | 'changed'): void {
	if (connection === 'connected') return
	const why = last_error ?? `it is ${connection}`
	throw new CliError(
		'failed',
		`the channel was ${done}, but is not connected: ${why}\nsvc channels show ${id} shows its state.`,
	)
}
