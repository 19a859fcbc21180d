/**
 * kill -9 of the gateway while people write to a Discord bot, and while it answers. Afterwards every message has one answer.
 *
 * CHANNEL_KILLS sets the number of kills (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startDiscord } from '../support/discord.ts'
import type { Channel, Message } from '../support/discord.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { eventually } from '../support/wait.ts'

/** Time limit of each wait, long enough for restarts and for retries of requests to Discord. */
const LIMIT_MS = 240_000
const KILLS = Number(process.env.CHANNEL_KILLS ?? 1)
/** A kill happens within this time after an answer, while others are being sent. */
const WINDOW_MS = 300
const CHATS = 3

void t.test(
	`each message is answered once through ${KILLS} kills`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const server = await startDiscord()
		t.teardown(() => server.stop())
		const home = makeHome({ config: 'server:\n  shutdown_grace_s: 0\n' }, t)
		let gateway = await spawnGateway(home)
		t.teardown(() => gateway.kill())
		const call = async (path: string, body: unknown) => {
			const reply = await send(`${gateway.url}/v1/${path}`, 'POST', { body })
			if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
			return reply.body
		}
		await call('agents', { name: 'ada' })
		await call('vault/secrets', { name: 'DISCORD', value: server.token })
		const { id: channel_id } = await call('channels', {
			type: 'chat_b',
			bot_token_ref: 'DISCORD',
			config: { api_root: server.url },
		})
		await call('channels/pair', { agent_id: 'ada', channel_id, external_chat_id: server.guild_id })
		const direct = server.addDirect()
		await call('channels/pair', { agent_id: 'ada', channel_id, external_chat_id: direct.id })
		const waitFor = (condition: () => boolean): Promise<boolean> => eventually(condition, Boolean, LIMIT_MS)

		const prompts: { channel: Channel; message: Message; words: string }[] = []
		/** `told`: whether Discord delivers it. */
		const ask = (channel: Channel, told = true): void => {
			const words = `say no. ${prompts.length}.`
			prompts.push({ channel, words, message: server.say(channel, words, { mention: channel !== direct, told }) })
		}
		/** In servers an answer is a reply; in direct chats it repeats the prompt. */
		const answers = ({ channel, message, words }: (typeof prompts)[number]): number =>
			server
				.written(channel)
				.filter(({ content, message_reference }) =>
					channel === direct ? content.includes(words) : message_reference?.message_id === message.id,
				).length
		/** A run that three kills in a row interrupt in the same step fails, as documented; its answer contains the code. */
		const restartLoops = (): number =>
			server.written(direct).filter(({ content }) => /restart_loop/.test(content)).length
		const unanswered = (): string[] => prompts.filter((one) => answers(one) === 0).map(({ words }) => words)
		const areAnswered = (): boolean => unanswered().length === restartLoops()

		await waitFor(() => server.connected === 1)
		// Discord announces no direct chat that the bot does not know. This prompt makes the chat known.
		ask(direct)
		await waitFor(areAnswered)
		for (let kill = 1; kill <= KILLS; kill++) {
			const chats = Array.from({ length: CHATS }, () => server.addChannel())
			const askAll = (told?: boolean): void => chats.forEach((chat) => ask(chat, told))
			const before = unanswered().length
			askAll()
			ask(direct)
			await waitFor(() => unanswered().length < before + CHATS)
			await pause(Math.random() * WINDOW_MS)
			askAll()
			await gateway.kill()
			await waitFor(() => server.connected === 0)
			askAll(false)
			ask(direct, false)
			// Discord executes the next two requests, but their responses are lost.
			server.fail({ method: 'POST', path: /messages$/, how: 'after', times: 2 })
			gateway = await spawnGateway(home)
			await waitFor(() => server.connected === 1)
		}
		await waitFor(areAnswered)
		// Pending answers are sent before the answers to these prompts.
		ask(direct)
		ask(server.addChannel())
		await waitFor(areAnswered)
		t.equal(prompts.length, KILLS * (3 * CHATS + 2) + 3)
		t.strictSame(
			prompts.filter((one) => answers(one) > 1).map(({ words }) => words),
			[],
			'no message is answered twice',
		)
		t.equal(unanswered().length, restartLoops(), 'no message is lost')
		t.strictSame(
			prompts.filter(({ channel }) => channel !== direct).filter((one) => answers(one) !== 1),
			[],
			'in servers each answer is a reply',
		)
		t.equal(await gateway.end(), 0, 'the gateway exits with code 0')
	},
)
