import { addChannel, checkAgent, configOf, mustBeName, settled } from './add.ts'
import type { ChannelOptions } from './add.ts'
import { allChannels, findChannel, platformOf } from './find.ts'
import type { Binding, ChannelDetails } from '../contract.ts'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli, Style } from '../../../core/cli/contract.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { permitted } from '../../../core/cli/or-null.ts'
import { pick } from '../../../core/cli/pick.ts'
import { when } from '../../../core/cli/when.ts'

const settingOptions = {
	'--agent <agent>': 'the agent for chats that are paired by a code',
	'--answer <what>': { about: 'in groups: answer messages to the bot (default) or all', choices: ['mentions', 'all'] },
	'--allow <sender...>': 'ids of the users who may talk to the bot; default: everyone in a bound chat',
	'--api-root <address>': "a server other than the platform's own",
	'--set <key=value...>':
		'a setting of the platform, such as port=7007 or nick.name=helper, as JSON or text; an empty value or null removes it',
}

export default {
	examples: `
Name a channel by its id, its token, its bot, or its platform if that has only one channel.

Examples:
  svc channels add telegram --agent ada    asks for the token that @BotFather gave
  svc channels add discord --name HELP_BOT < token.txt
  svc channels add line --set port=7008    the platform of a plugin, with one of its settings
  svc channels pair 7K3N9QXM               the code that the bot answered /start with
  svc channels pair telegram --chat -1001234567890 --agent ada
  svc channels unbind telegram -- -1001234567890`,
	commands: {
		list: {
			description: 'List the channels and the state of their connections',
			async run(cli) {
				const channels = await allChannels(cli.api)
				answerTable(cli, channels, 'No channels yet. Connect a bot: svc channels add telegram', (one) => ({
					channel: one.id,
					platform: platformOf(one.type),
					connection: one.connection,
					bot: one.bot,
					chats: one.bindings.length,
					token: one.bot_token_ref,
					'last error': one.last_error,
				}))
			},
		},
		show: {
			description: 'Show a channel with its connection, its settings and its chats',
			arguments: '<channel>',
			async run(cli, { channel: wanted }: { channel: string }) {
				cli.out.answer(await findChannel(cli.api, wanted), details)
			},
		},
		add: {
			description: 'Connect a bot: asks for its token, or reads it from standard input, and stores it in the vault',
			arguments: '<platform>',
			options: {
				...settingOptions,
				'--name <name>': 'name of the token in the vault; default TELEGRAM_TOKEN, DISCORD_TOKEN',
				'--secret <name>': 'name of a token that is already in the vault',
			},
			takesSecret: true,
			async run(cli, { platform: type, ...options }: { platform: string } & ChannelOptions) {
				const channel = await addChannel(cli, type, options)
				cli.out.answer(channel, details)
				mustWork(channel, 'created')
				cli.out.note('Send /start to the bot. It answers with a code: svc channels pair CODE')
			},
		},
		update: {
			description: 'Change settings of a channel, and reconnect it',
			arguments: '<channel>',
			options: { ...settingOptions, '--secret <name>': 'another secret of the vault that holds its token' },
			async run(cli, { channel: wanted, ...options }: { channel: string } & ChannelOptions) {
				const { secret } = options
				if (secret !== undefined) mustBeName(secret)
				configOf(options) // reports invalid options first
				const { id, config: present } = await findChannel(cli.api, wanted)
				const config = configOf(options, present)
				await checkAgent(cli, config.agent_id)
				const body = { bot_token_ref: secret, config }
				await cli.api.request('PATCH', path`/v1/channels/${id}`, body)
				const channel = await settled(cli, id)
				cli.out.answer(channel, details)
				mustWork(channel, 'changed')
			},
		},
		pair: {
			description: "Bind a chat to an agent, by the code from the bot or by the chat's id",
			arguments: '<words...>',
			usage: '[channel] <code> | <channel> --chat <id> --agent <agent>',
			options: {
				'--agent <agent>': 'the agent; default with a code: that of the channel, or the only one',
				'--chat <id>': 'id of the chat, as /whoami shows it',
				'--who-may-answer <who>': {
					about: 'questions and approvals; default with a code: paired, the person who asked for it',
					choices: ['anyone', 'paired'],
				},
				'--paired-by <sender>': 'without a code: id of the person who counts as paired',
			},
			async run(cli, { words, ...options }: { words: string[] } & PairOptions) {
				const body = await pairing(cli, words, options)
				const bound = await cli.api.request<Binding>('POST', '/v1/channels/pair', body)
				cli.out.answer(bound, (one) => `The chat ${one.external_chat_id} now talks to ${one.agent_id}.`)
			},
		},
		bindings: {
			description: 'List the bound chats of one channel or of all',
			arguments: '[channel]',
			async run(cli, { channel: wanted }: { channel?: string }) {
				const list = wanted === undefined ? await allChannels(cli.api) : [await findChannel(cli.api, wanted)]
				const all = list.flatMap((one) => one.bindings.map((binding) => ({ ...binding, type: one.type })))
				answerTable(cli, all, 'No chat is bound yet. Send /start to the bot; it answers with a code.', (one) => ({
					binding: one.binding_id,
					platform: platformOf(one.type),
					chat: one.external_chat_id,
					agent: one.agent_id,
					'who may answer': one.who_may_answer,
					since: when(one.created_at),
				}))
			},
		},
		unbind: {
			description: 'Unbind a chat from its agent, by the id of the chat or of the binding',
			arguments: '<channel> <chat>',
			options: yesOption,
			async run(cli, { channel: wanted, chat, ...options }: { channel: string; chat: string; yes?: boolean }) {
				const { id, bindings } = await findChannel(cli.api, wanted)
				const { binding_id, agent_id, external_chat_id } = pick(bindings, chat, {
					kind: 'chat',
					id: (one) => one.binding_id,
					names: (one) => [one.external_chat_id],
				})
				await consent(cli, options, `Unbind the chat ${external_chat_id} from ${agent_id}?`)
				const removed = await cli.api.request('DELETE', path`/v1/channels/${id}/bindings/${binding_id}`)
				cli.out.answer(removed, () => `The chat ${external_chat_id} is unbound.`)
			},
		},
		remove: {
			description: 'Delete a channel and its bindings; its token stays in the vault',
			arguments: '<channel>',
			options: yesOption,
			async run(cli, { channel: wanted, ...options }: { channel: string; yes?: boolean }) {
				const { id, type, bindings, bot_token_ref } = await findChannel(cli.api, wanted)
				await consent(
					cli,
					options,
					`Delete the ${platformOf(type)} channel ${id} with ${pluralize(bindings.length, 'chat')}?`,
				)
				const removed = await cli.api.request('DELETE', path`/v1/channels/${id}`)
				cli.out.answer(removed, () => `Deleted ${id}.`)
				const secrets = await permitted(cli.api.request<{ id: string; name: string }[]>('GET', '/v1/vault/secrets'))
				if (secrets?.some(({ id, name }) => [id, name].includes(bot_token_ref)))
					cli.out.note(`Its token is still in the vault: svc vault delete ${bot_token_ref}`)
			},
		},
	},
} satisfies Command

interface PairOptions {
	agent?: string
	chat?: string
	whoMayAnswer?: string
	pairedBy?: string
}

async function pairing(cli: Cli, words: string[], options: PairOptions): Promise<object> {
	const { agent, chat, whoMayAnswer, pairedBy } = options
	const [first = '', second] = words
	const answerers = { who_may_answer: whoMayAnswer, paired_by: pairedBy }
	if (words.length > 2) throw new CliError('usage', 'give at most a channel and a code')
	if (chat === undefined) {
		// A code identifies its channel: naming one is optional, and must not name another.
		if (second !== undefined) await findChannel(cli.api, first)
		return { pairing_code: second ?? first, agent_id: agent, ...answerers }
	}
	if (second !== undefined) throw new CliError('usage', 'give either a code or --chat')
	if (agent === undefined) throw new CliError('usage', '--chat needs --agent: the agent that answers there')
	const { id } = await findChannel(cli.api, first)
	return { agent_id: agent, channel_id: id, external_chat_id: chat, ...answerers }
}

/** A channel with its connection, its settings and its chats, for people. */
function details(one: ChannelDetails, style: Style): string {
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

/** Throws a `CliError` with the reason if a channel is not connected. `done`: what the command did. */
function mustWork({ connection, last_error, id }: ChannelDetails, done: 'created' | 'changed'): void {
	if (connection === 'connected') return
	const why = last_error ?? `it is ${connection}`
	throw new CliError(
		'failed',
		`the channel was ${done}, but is not connected: ${why}\nsvc channels show ${id} shows its state.`,
	)
}
