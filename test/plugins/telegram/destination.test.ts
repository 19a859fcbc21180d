/** Results of heartbeats reach their chat once, whenever the gateway is killed. `SVC_DELIVERY_KILLS`: number of kills, default 3. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { markFormat } from '../../support/format.ts'
import { makeHome, send, startHere } from '../../support/gateway.ts'
import type { Answer, KillableGateway } from '../../support/gateway.ts'
import { changeHeartbeats } from '../../support/heartbeats.ts'
import { addChannel } from '../../support/loop.ts'
import { spawnGateway } from '../../support/process.ts'
import { startTelegram } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'

const KILLS = Number(process.env.SVC_DELIVERY_KILLS ?? 3)
const HOUR_MS = 3_600_000

/** A gateway with an agent that is bound to two chats. */
async function setUp(t: Test, open: (home: string) => Promise<KillableGateway>) {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' }, t)
	let gateway = await open(home)
	t.teardown(() => gateway.kill())
	const request = (method: string, path: string, options: { body?: unknown } = {}) =>
		send<Answer>(gateway.url + path, method, options)
	await request('POST', '/v1/agents', { body: { name: 'ada' } })
	const channel = await addChannel({ request } as Parameters<typeof addChannel>[0], telegram.token, {
		type: 'chat_a',
		config: { api_root: telegram.url },
	})
	const [chat, other] = [telegram.person(4301, 'Ada'), telegram.person(4302, 'Bob')]
	for (const { id } of [chat, other])
		await request('POST', '/v1/channels/pair', {
			body: { agent_id: 'ada', channel_id: channel, external_chat_id: String(id), who_may_answer: 'anyone' },
		})
	const count = (words: string, where = chat): number =>
		telegram.messages(where).filter(({ text }) => text.includes(words)).length
	return {
		telegram,
		home,
		request,
		channel,
		chat,
		other,
		count,
		kill: () => gateway.kill(),
		start: async (start = open) => void (gateway = await start(home)),
		/** Makes every heartbeat due while the gateway is down. */
		due: () => changeHeartbeats(home, () => ({ next_at: new Date(Date.now() - 1_000).toISOString() })),
		heartbeats: async (): Promise<Answer[]> => (await request('GET', '/v1/agents/ada/heartbeats')).body,
		runs: async (): Promise<Answer[]> => (await request('GET', '/v1/agents/ada/runs')).body,
	}
}

void t.test('a heartbeat set up in a chat is delivered there once, despite kills', async (t) => {
	const setup = await setUp(t, spawnGateway)
	setup.telegram.say(setup.chat, '/tool heartbeat.create {"every": "1h", "prompt": "water the plants"}')
	await eventually(async () => (await setup.heartbeats()).length === 1)
	t.match(await setup.heartbeats(), [{ deliver: 'origin' }])
	await eventually(async () => (await setup.runs()).every(({ status }) => status === 'completed'))
	await eventually(() => setup.count('next_at') === 1)
	/** Waits until the beat was executed: its run is stored, or it was skipped. */
	const beatDone = () => eventually(async () => Date.parse((await setup.heartbeats())[0]?.next_at) > Date.now())
	for (let kill = 1; kill <= KILLS; kill++) {
		await setup.kill()
		await setup.due()
		const before = setup.count('water the plants')
		await setup.start()
		// The next kill follows when the answer was sent, when the beat was executed, or at once.
		if (kill % 3 === 1) await eventually(() => setup.count('water the plants') > before)
		if (kill % 3 === 2) await beatDone()
	}
	await setup.kill()
	await setup.start(startHere)
	await beatDone()
	const fired = async (): Promise<number> =>
		(await setup.request('GET', '/v1/audit?agent_id=ada&event_type=heartbeat.fired&limit=500')).body.events.length
	await eventually(async () => (await setup.runs()).every(({ status }) => status === 'completed'))
	await eventually(async () => setup.count('water the plants') >= (await fired()))
	// Sent after everything that is pending in the chat.
	setup.telegram.say(setup.chat, 'anything else?')
	await eventually(() => setup.count('anything else?') >= 1)
	t.ok((await fired()) >= Math.ceil(KILLS / 3))
	t.equal(setup.count('water the plants'), await fired())
	t.equal(setup.count('water the plants', setup.other), 0)
})

void t.test('a reminder set in a chat is delivered there once, after two kills of the gateway', async (t) => {
	const setup = await setUp(t, spawnGateway)
	setup.telegram.say(setup.chat, '/tool heartbeat.create {"at": "in 20 minutes", "prompt": "the tea is ready"}')
	await eventually(() => setup.count('next_at') === 1)
	const [reminder] = await setup.heartbeats()
	t.match(reminder, { deliver: 'origin', every: null, cron: null, paused: false })
	t.ok(Date.parse(reminder.at) > Date.now() && reminder.next_at === reminder.at)
	setup.telegram.say(setup.other, '/tool heartbeat.list {}')
	await eventually(() => setup.count('the tea is ready', setup.other) === 1)
	await setup.kill()
	await setup.start()
	t.match(await setup.heartbeats(), [reminder])
	await setup.kill()
	await setup.due()
	await setup.start()
	await eventually(() => setup.count('the tea is ready') === 1)
	await eventually(async () => (await setup.heartbeats()).length === 0)
	await setup.kill()
	await setup.start(startHere)
	// Sent after everything that is pending in the chat.
	for (const where of [setup.chat, setup.other]) {
		setup.telegram.say(where, 'anything else?')
		await eventually(() => setup.count('anything else?', where) === 1)
		t.equal(setup.count('the tea is ready', where), 1)
	}
})

void t.test('deliver accepts a bound chat, rejects any other, and defaults to none', async (t) => {
	const setup = await setUp(t, startHere)
	const post = (deliver: unknown) =>
		setup.request('POST', '/v1/agents/ada/heartbeats', { body: { every: '1h', prompt: 'say hello', deliver } })
	const remove = (id: string) => setup.request('DELETE', `/v1/agents/ada/heartbeats/${id}`)
	t.match(await post({ channel: setup.channel, chat: '99' }), {
		status: 400,
		body: { message: /chat "99" .* is not bound to agent "ada"/ },
	})
	t.match(await post('origin'), { status: 400, body: { message: /origin is only valid in a chat/ } })
	const wanted = { channel: setup.channel, chat: String(setup.other.id) }
	// One at a time: the beats of a busy agent are skipped.
	const { body: none } = await post(undefined)
	t.match(none, { deliver: 'none' })
	await remove(none.id)
	const { body: named } = await post(wanted)
	t.match(named, { deliver: wanted })
	await setup.kill()
	await setup.due()
	await setup.start()
	await eventually(() => setup.count('say hello', setup.other) === 1)
	await eventually(async () =>
		(await setup.heartbeats()).every(({ next_at }) => Date.parse(next_at) > Date.now() + HOUR_MS / 2),
	)
	await remove(named.id)

	// As version 0.1.0 stored it.
	await post(wanted)
	await setup.kill()
	await changeHeartbeats(setup.home, () => ({ destination: undefined }))
	await markFormat(join(setup.home, 'data'), 1)
	await setup.due()
	await setup.start()
	t.match(await setup.heartbeats(), [{ deliver: 'none' }])
	await eventually(async () => (await setup.runs()).length === 2)
	await eventually(async () => (await setup.runs()).every(({ status }) => status === 'completed'))
	// Sent after everything that is pending in the chat.
	setup.telegram.say(setup.other, 'anything else?')
	await eventually(() => setup.count('anything else?', setup.other) === 1)
	t.equal(setup.count('say hello', setup.other), 1)
	t.equal(setup.count('say hello'), 0)
})

void t.test('a heartbeat that fails repeatedly is reported once per reason', async (t) => {
	const setup = await setUp(t, startHere)
	// An interrupted message can be found only in a chat with a message from a person.
	setup.telegram.say(setup.chat, 'good morning')
	await eventually(() => setup.count('good morning') === 1)
	// Not a model server: it refuses every request.
	const refusing = `{ kind: openai, base_url: '${setup.telegram.url}', model: m }`
	const absent = "{ kind: openai, base_url: 'http://127.0.0.1:1', model: m }"
	const named = `offline: { kind: offline }, refusing: ${refusing}, absent: ${absent}`
	const providers = `providers: { ${named} }\ndefault_provider: offline\n`
	appendFileSync(join(setup.home, 'config/gateway.yaml'), providers)
	const deliver = { channel: setup.channel, chat: String(setup.chat.id) }
	const body = { every: '1h', prompt: 'water the plants', deliver }
	await setup.request('POST', '/v1/agents/ada/heartbeats', { body })
	let beats = 0
	const beat = async (): Promise<void> => {
		await setup.kill()
		await setup.due()
		await setup.start()
		beats++
		await eventually(async () => {
			const runs = (await setup.runs()).filter(({ trigger }) => trigger === 'heartbeat')
			return runs.length === beats && runs.every(({ ended_at }) => ended_at !== null)
		})
	}
	const provider = (name: string | null) =>
		setup.request('PATCH', '/v1/agents/ada', { body: { config: { provider: name } } })
	for (const name of ['refusing', 'refusing', 'absent', 'refusing']) {
		await provider(name)
		await beat()
	}
	await provider(null)
	await beat()
	await eventually(() => setup.count('water the plants') === 1)
	t.equal(setup.count('did not work'), 2, 'each reason once')
	await provider('refusing')
	await beat()
	await eventually(() => setup.count('did not work') === 3)
	t.equal(setup.count('water the plants'), 1)
})
