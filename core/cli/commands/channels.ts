import { Option } from 'commander'
import type { Command } from 'commander'
import { addChannel, configOf, mustBeName, settled } from '../channels-add.ts'
import type { ChannelOptions } from '../channels-add.ts'
import { allChannels, findChannel, platformOf } from '../channels-find.ts'
import type { Binding } from '../channels-find.ts'
import { details, mustWork } from '../channels-text.ts'
import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { count } from '../count.ts'
import { pick } from '../pick.ts'
import { takesSecret } from '../secret-input.ts'
import { when } from '../when.ts'

export const register: Register = (program, cli) => {
	const channels = program
		.command('channels')
		.description('Reach agents by Telegram, Discord and others')
		.addHelpText('after', examples)

	channels
		.command('list')
		.description('List the channels and how they are connected')
		.action(async () => {
			cli.out.answer(await allChannels(cli.api), (list, style) =>
				style.table(
					['channel', 'platform', 'connection', 'bot', 'chats', 'token', 'last error'],
					list.map((one) => [
						one.id,
						platformOf(one.type),
						one.connection,
						one.bot,
						one.bindings.length,
						one.bot_token_ref,
						one.last_error,
					]),
					'No channels yet. Connect a bot: svc channels add telegram',
				),
			)
		})

	channels
		.command('show <channel>')
		.description('Show a channel with its connection, its settings and its chats')
		.action(async (wanted: string) => {
			cli.out.answer(await findChannel(cli.api, wanted), details)
		})

	takesSecret(withSettings(channels.command('add <platform>')))
		.description('Connect a bot: asks for its token, or reads it from standard input, and keeps it in the vault')
		.option('--name <name>', 'what the vault calls the token; default TELEGRAM_TOKEN, DISCORD_TOKEN')
		.option('--secret <name>', 'a token that is in the vault already')
		.action(async (type: string, options: ChannelOptions, command: Command) => {
			const channel = await addChannel(cli, type, options, command)
			cli.out.answer(channel, details)
			mustWork(channel)
			cli.out.note('Send /start to the bot. It answers with a code: svc channels pair CODE')
		})

	withSettings(channels.command('update <channel>'))
		.description('Change settings of a channel, and connect it anew')
		.option('--secret <name>', 'another secret of the vault that holds its token')
		.action(async (wanted: string, options: ChannelOptions) => {
			const { secret } = options
			if (secret !== undefined) mustBeName(secret)
			const { id } = await findChannel(cli.api, wanted)
			const body = { ...(secret !== undefined && { bot_token_ref: secret }), config: configOf(options) }
			await cli.api.request('PATCH', path`/v1/channels/${id}`, body)
			const channel = await settled(cli, id)
			cli.out.answer(channel, details)
			mustWork(channel)
		})

	channels
		.command('pair <words...>')
		.usage('[channel] <code> | <channel> --chat <id> --agent <agent>')
		.description('Bind a chat to an agent: by the code that the bot gave to it, or by its id')
		.option('--agent <agent>', 'the agent; with a code: default the one of the channel, or the only one')
		.option('--chat <id>', 'id of the chat, as /whoami shows it')
		.action(async (words: string[], options: { agent?: string; chat?: string }) => {
			const body = await pairing(words, options)
			const bound = await cli.api.request<Binding>('POST', '/v1/channels/pair', body)
			cli.out.answer(bound, (one) => `The chat ${one.external_chat_id} talks to ${one.agent_id} now.`)
		})

	channels
		.command('bindings [channel]')
		.description('List the chats that are bound, of one channel or of all')
		.action(async (wanted?: string) => {
			const list = wanted === undefined ? await allChannels(cli.api) : [await findChannel(cli.api, wanted)]
			const all = list.flatMap((one) => one.bindings.map((binding) => ({ ...binding, type: one.type })))
			cli.out.answer(all, (bindings, style) =>
				style.table(
					['binding', 'platform', 'chat', 'agent', 'since'],
					bindings.map((one) => [
						one.binding_id,
						platformOf(one.type),
						one.external_chat_id,
						one.agent_id,
						when(one.created_at),
					]),
					'No chat is bound yet. Send /start to the bot: it says how.',
				),
			)
		})

	channels
		.command('unbind <channel> <chat>')
		.description('Take a chat from its agent, by the id of the chat or of the binding')
		.option(...yesOption)
		.action(async (wanted: string, chat: string, options: { yes?: boolean }) => {
			const { id, bindings } = await findChannel(cli.api, wanted)
			const { binding_id, agent_id, external_chat_id } = pick(bindings, chat, {
				kind: 'chat',
				id: (one) => one.binding_id,
				names: (one) => [one.external_chat_id],
			})
			await consent(cli, options, `Take the chat ${external_chat_id} from ${agent_id}?`)
			const removed = await cli.api.request('DELETE', path`/v1/channels/${id}/bindings/${binding_id}`)
			cli.out.answer(removed, () => `The chat ${external_chat_id} is unbound.`)
		})

	channels
		.command('remove <channel>')
		.description('Close a channel and delete it with its chats; its token stays in the vault')
		.option(...yesOption)
		.action(async (wanted: string, options: { yes?: boolean }) => {
			const { id, type, bindings, bot_token_ref } = await findChannel(cli.api, wanted)
			await consent(
				cli,
				options,
				`Delete the ${platformOf(type)} channel ${id} with ${count(bindings.length, 'chat')}?`,
			)
			const removed = await cli.api.request('DELETE', path`/v1/channels/${id}`)
			cli.out.answer(removed, () => `Deleted ${id}.`)
			cli.out.note(`Its token is still in the vault: svc vault delete ${bot_token_ref}`)
		})

	async function pairing(words: string[], { agent, chat }: { agent?: string; chat?: string }): Promise<object> {
		const [first = '', second] = words
		if (words.length > 2) throw new CliError('usage', 'give a channel and a code at most')
		if (chat === undefined) {
			// A code knows its channel: naming one is for people, and must not name another.
			if (second !== undefined) await findChannel(cli.api, first)
			return { pairing_code: second ?? first, ...(agent !== undefined && { agent_id: agent }) }
		}
		if (second !== undefined) throw new CliError('usage', 'give either a code or --chat')
		if (agent === undefined) throw new CliError('usage', '--chat needs --agent: the agent that answers there')
		const { id } = await findChannel(cli.api, first)
		return { agent_id: agent, channel_id: id, external_chat_id: chat }
	}
}

function withSettings(command: Command): Command {
	return command
		.option('--agent <agent>', 'the agent of chats that are paired by a code')
		.addOption(
			new Option('--answer <what>', 'in groups: what is said to the bot, the default, or all').choices([
				'mentions',
				'all',
			]),
		)
		.option('--allow <sender...>', 'ids of those who may talk to the bot; default everybody in a bound chat')
		.option('--api-root <address>', "another server than the platform's own")
}

const examples = `
A channel goes by its id, by the name of its token, by its bot, or by its platform where there is only one.

Examples:
  svc channels add telegram --agent ada    asks for the token that @BotFather gave
  svc channels add discord --name HELP_BOT < token.txt
  svc channels pair 7K3N9QXM               the code that the bot answered /start with
  svc channels pair telegram --chat -1001234567890 --agent ada
  svc channels unbind telegram -- -1001234567890`
