/**
 * kill -9 of the gateway while people write to a Telegram bot. Afterwards every message has one answer.
 *
 * CHANNEL_KILLS sets the number of kills (1).
 */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeHome, send, startHere } from '../support/gateway.ts'
import type { KillableGateway } from '../support/gateway.ts'
import { addChannel } from '../support/loop.ts'
import { spawnGateway } from '../support/process.ts'
import { allAnswered, startTelegram } from '../support/telegram.ts'

const KILLS = Number(process.env.CHANNEL_KILLS ?? 1)
const PEOPLE = 5
/** A kill happens within this time after the first message. */
const WINDOW_MS = 900

void t.test(
	`each message is answered once through ${KILLS} kills`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const telegram = await startTelegram()
		t.teardown(() => telegram.stop())
		const home = makeHome({ config: 'server:\n  shutdown_grace_s: 0\nchannels:\n  retry_max_s: 1\n' }, t)
		let gateway: KillableGateway = await spawnGateway(home)
		t.teardown(() => gateway.kill())
		const request = (method: string, path: string, options: { body?: unknown }) =>
			send(gateway.url + path, method, options)
		await request('POST', '/v1/agents', { body: { name: 'echo' } })
		const channel_id = await addChannel({ request } as Parameters<typeof addChannel>[0], telegram.token, {
			type: 'chat_a',
			config: { api_root: telegram.url },
		})
		const people = Array.from({ length: PEOPLE }, (_, n) => telegram.person(100 + n, `P${n}`))
		const team = telegram.group(-1_001_000_000_001, 'Team')
		for (const { id } of [...people, team]) {
			const body = { agent_id: 'echo', channel_id, external_chat_id: String(id) }
			await request('POST', '/v1/channels/pair', { body })
		}

		const texts: string[] = []
		for (let kill = 1; kill <= KILLS; kill++) {
			const start = performance.now()
			const window = Math.random() * WINDOW_MS
			for (const [n, person] of people.entries()) {
				const text = `word ${kill}-${n}.`
				texts.push(text)
				telegram.say(person, text)
				if ((kill + n) % 3 === 0) telegram.fault('sendRichMessage', n % 2 === 0 ? 'cut after' : 'cut before')
				await pause(window / (2 * PEOPLE))
			}
			texts.push(`team ${kill}.`)
			telegram.say(team, `@${telegram.bot.username} team ${kill}.`)
			await pause(Math.max(0, window - (performance.now() - start)))
			await gateway.kill()
			gateway = await (kill < KILLS ? spawnGateway(home) : startHere(home))
			// A run that is active at three crashes in a row fails, in case it is their cause.
			if (kill % 2 === 0) await allAnswered(telegram, texts)
		}
		const answersTo = (text: string) => telegram.messages().filter((message) => message.text.includes(text))
		await allAnswered(telegram, texts)
		for (const text of texts) {
			const answers = answersTo(text)
			t.strictSame(
				answers.map(({ text }) => text),
				[answers[0]?.text],
				`${text} is answered once`,
			)
			t.equal(answers[0]?.texts.length, 1, 'by a separate message')
		}
	},
)
