/**
 * kill -9 while people write to a Discord bot, and while it answers. Afterwards each message has one answer.
 *
 * CHANNEL_KILLS sets the number of kills (1).
 */
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { startDiscord } from '../support/discord.ts'
import type { Channel, Message } from '../support/discord.ts'
import { makeHome, send } from '../support/gateway.ts'
import { spawnGateway } from '../support/process.ts'
import { eventually } from '../support/wait.ts'

/** The longest wait for anything: restarts, and retries of Discord's requests. */
const MOST_MS = 240_000
const KILLS = Number(process.env.CHANNEL_KILLS ?? 1)
/** A kill strikes that long after an answer, at most: while others are on their way. */
const WINDOW_MS = 300
const CHATS = 3

void t.test(
	`each message is answered once through ${KILLS} kills`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const server = await startDiscord()
		t.teardown(() => server.stop())
		const home = makeHome({ config: 'server:\n  shutdown_grace_s: 0\n' })
		t.teardown(() => rmSync(home, { recursive: true, force: true }))
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
		const until = (what: () => boolean): Promise<boolean> => eventually(what, Boolean, MOST_MS)

		const asked: { channel: Channel; message: Message; words: string }[] = []
		const ask = (channel: Channel, told = true): void => {
			const words = `say no. ${asked.length}.`
			asked.push({ channel, words, message: server.say(channel, words, { mention: channel !== direct, told }) })
		}
		/** In servers an answer is a reply; in direct chats it is known by what it repeats. */
		const answers = ({ channel, message, words }: (typeof asked)[number]): number =>
			server
				.written(channel)
				.filter((one) =>
					channel === direct ? one.content.includes(words) : one.message_reference?.message_id === message.id,
				).length
		/** A run that three kills in a row meet in the same step fails, and rightly so; its answer says that. */
		const excuses = (): number => server.written(direct).filter(({ content }) => /restart_loop/.test(content)).length
		const unanswered = (): string[] => asked.filter((one) => answers(one) === 0).map(({ words }) => words)
		const areAnswered = (): boolean => unanswered().length === excuses()

		await until(() => server.connected === 1)
		// Discord tells a bot of no direct chat that it does not know: this one is known from here on.
		ask(direct)
		await until(areAnswered)
		for (let kill = 1; kill <= KILLS; kill++) {
			const chats = Array.from({ length: CHATS }, () => server.addChannel())
			const work = (told?: boolean): void => chats.forEach((chat) => ask(chat, told))
			const before = unanswered().length
			work()
			ask(direct)
			await until(() => unanswered().length < before + CHATS)
			await pause(Math.random() * WINDOW_MS)
			work()
			await gateway.kill()
			await until(() => server.connected === 0)
			work(false)
			ask(direct, false)
			// What it had asked for is acted upon, and told to nobody.
			server.fail({ method: 'POST', path: /messages$/, how: 'after', times: 2 })
			gateway = await spawnGateway(home)
			await until(() => server.connected === 1)
		}
		await until(areAnswered)
		// Whatever waits still is behind these.
		ask(direct)
		ask(server.addChannel())
		await until(areAnswered)
		t.equal(asked.length, KILLS * (3 * CHATS + 2) + 3)
		t.strictSame(
			asked.filter((one) => answers(one) > 1).map(({ words }) => words),
			[],
			'none is answered twice',
		)
		t.equal(unanswered().length, excuses(), 'none is lost')
		t.strictSame(
			asked.filter(({ channel }) => channel !== direct).filter((one) => answers(one) !== 1),
			[],
			'in servers each answer is a reply',
		)
		t.equal(await gateway.end(), 0, 'it ends cleanly')
	},
)
