/**
 * kill -9 while people chat with agents. Afterwards each message was answered exactly once. The platform outlives the gateway, and
 * also loses some of its own responses.
 *
 * CHANNEL_KILLS sets the number of kills (2).
 */
import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { makeHome, send } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { ongoingRunsEnd } from '../support/restarts.ts'
import { addRoomChannel, bindChat, roomPluginFiles, startRoomPlatform } from '../support/room-platform.ts'

const KILLS = Number(process.env.CHANNEL_KILLS ?? 2)
const TYPES = ['room', 'room_find', 'room_edit']
const CHATS = 2
/** Messages in each chat between two kills. */
const MESSAGES = 3
/** The longest time from the answers to a kill, and from the start to an early kill. */
const WINDOW_MS = 150
const EARLY_WINDOW_MS = 60
/** Words of a message; the answer is too long for one message of any format. */
const WORDS = 60
const GROWING = 'growing'
const ASKING = 'asking'

void t.test(
	`each message is answered once through ${KILLS} kills`,
	{ timeout: 300_000 + KILLS * 10_000 },
	async (t) => {
		const [room, held] = await Promise.all([startRoomPlatform(), startManualModel()])
		room.latency_ms = 10
		const config = `
server: { shutdown_grace_s: 0 }
plugins: { room: true }
default_provider: offline
providers:
  offline: { kind: offline }
  held: { kind: openai, base_url: '${held.url}', api_key: test, model: test }
`
		const home = makeHome({ config, files: roomPluginFiles() })
		let gateway = await spawnGateway(home)
		t.teardown(async () => {
			await gateway.kill()
			await Promise.all([room.stop(), held.stop()])
			rmSync(home, { recursive: true, force: true })
		})
		const request: Parameters<typeof addRoomChannel>[0]['request'] = (method, path, options) =>
			send(gateway.url + path, method, options)
		const chats: string[] = []
		const channels: string[] = []
		const growing = await addRoomChannel({ request }, room, 'room_grow')
		room.place(GROWING, 'room_grow')
		for (const type of TYPES) {
			const channel = await addRoomChannel({ request }, room, type)
			channels.push(channel)
			for (let n = 1; n <= CHATS; n++) {
				const name = `${type}-${n}`
				chats.push(name)
				room.place(name, type)
				await request('POST', '/v1/agents', { body: { name } })
				await bindChat({ request }, channel, name, name)
			}
		}
		const sent = new Map(chats.map((chat) => [chat, [] as string[]]))
		const wordsOf = (text: string): string[] => Array.from({ length: WORDS }, (_, n) => `${text}w${n}e`)
		const sendAll = async (): Promise<void> => {
			for (let n = 0; n < MESSAGES; n++) {
				for (const chat of chats) {
					const text = `m${sent.get(chat)?.length}of${chat}`
					sent.get(chat)?.push(text)
					const message = room.say(chat, wordsOf(text).join(' '))
					if (Math.random() < 0.3) room.deliver(message)
					if (Math.random() < 0.15) room.failNext(chat, { fault: Math.random() < 0.5 ? 'lost' : 'cut' })
				}
				await pause(Math.random() * 40)
			}
		}

		const countAnswers = (): number[] => chats.map((chat) => room.shown(chat).length)
		for (let kill = 1; kill < KILLS; kill++) {
			const isEarly = kill % 2 === 0
			const before = countAnswers()
			const sending = sendAll()
			if (!isEarly) {
				// Otherwise the next kills may hit the same step of a run, which then fails with restart_loop.
				await ongoingRunsEnd(gateway.url)
				await room.until(() => countAnswers().every((count, n) => count > (before[n] ?? 0)), 'an answer in each chat')
			}
			await pause(Math.random() * (isEarly ? EARLY_WINDOW_MS : WINDOW_MS))
			await gateway.kill()
			await sending
			gateway = await spawnGateway(home)
		}
		// The last kill happens while the preview of an answer is shown, and a question of a sub-agent is pending.
		room.place(ASKING, 'room')
		await request('POST', '/v1/agents', { body: { name: ASKING } })
		await bindChat({ request }, channels[0] ?? '', ASKING, ASKING)
		await room.shows(ASKING, 1)
		room.say(ASKING, `/tool subagent.spawn ${JSON.stringify({ prompt: '/tool ask {"question":"Which?"}' })}`)
		await room.shows(ASKING, 2)
		await request('POST', '/v1/agents', { body: { name: GROWING, config: { provider: 'held' } } })
		await bindChat({ request }, growing, GROWING, GROWING)
		const [hello] = await room.shows(GROWING, 1)
		room.say(GROWING, 'grow')
		await room.shows(GROWING, 2)
		await gateway.kill()
		room.say(ASKING, 'this one')
		gateway = await spawnGateway(home)
		const call = await held.called('grow', 2)
		call.answer('at last.')
		await room.until(() => room.shown(GROWING).at(-1)?.text === 'Well, at last.', 'the answer in place of its preview')
		const transcript = (chat: string): string =>
			room
				.shown(chat)
				.map(({ text }) => text)
				.join('\n')
		const isDone = (chat: string): boolean => {
			const last = transcript(chat).lastIndexOf(wordsOf(sent.get(chat)?.at(-1) ?? '').at(-1) ?? '')
			return last >= 0 && transcript(chat).endsWith('OPENAI_API_KEY set.')
		}
		for (const chat of chats) await room.until(() => isDone(chat), `the last answer in ${chat}`)
		for (const chat of chats) {
			t.notMatch(transcript(chat), /Sorry/, `${chat}: no run failed`)
			const expected = (sent.get(chat) ?? []).flatMap(wordsOf)
			t.strictSame(
				transcript(chat).match(/\bm\d+of[\w-]+?e\b/g),
				expected,
				`${chat}: each word is answered once, in order`,
			)
		}
		t.strictSame(
			room.shown(GROWING).map(({ text }) => text),
			[hello?.text, 'Well, at last.'],
			'the answer replaces the preview from before the kill',
		)
		const [, question, answer, ...rest] = await room.shows(ASKING, 3)
		t.equal(question?.text, 'A sub-agent asks:\n\nWhich?')
		t.match(
			answer?.text,
			/subagent.spawn answered.*this one/,
			'the message sent while no gateway was running answers the question',
		)
		t.strictSame(rest, [])
		t.equal(gateway.errors(), '', 'the last gateway printed no errors')
	},
)
