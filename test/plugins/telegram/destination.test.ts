/** Results that no message asked for reach their chat once, whenever the gateway is killed. `SVC_DELIVERY_KILLS`: how many kills, default 3. */
import { appendFileSync, rmSync } from 'node:fs'
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

/** An agent that two chats are bound to. */
async function chats(t: Test, open: (home: string) => Promise<KillableGateway>) {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' })
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
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

void t.test('a heartbeat set up in a chat is delivered there once, through kills', async (t) => {
	const it = await chats(t, spawnGateway)
	it.telegram.say(it.chat, '/tool heartbeat.create {"every": "1h", "prompt": "water the plants"}')
	await eventually(async () => (await it.heartbeats()).length === 1)
	t.match(await it.heartbeats(), [{ deliver: 'origin' }])
	await eventually(async () => (await it.runs()).every(({ status }) => status === 'completed'))
	await eventually(() => it.count('next_at') === 1)
	/** The beat was carried out: its run is stored, or it was skipped. */
	const beaten = () => eventually(async () => Date.parse((await it.heartbeats())[0]?.next_at) > Date.now())
	for (let kill = 1; kill <= KILLS; kill++) {
		await it.kill()
		await it.due()
		const before = it.count('water the plants')
		await it.start()
		// The stage of the next kill changes: once the answer was sent, once the beat was carried out, at once.
		if (kill % 3 === 1) await eventually(() => it.count('water the plants') > before)
		if (kill % 3 === 2) await beaten()
	}
	await it.kill()
	await it.start(startHere)
	await beaten()
	const fired = async (): Promise<number> =>
		(await it.request('GET', '/v1/audit?agent_id=ada&event_type=heartbeat.fired&limit=500')).body.events.length
	await eventually(async () => (await it.runs()).every(({ status }) => status === 'completed'))
	await eventually(async () => it.count('water the plants') >= (await fired()))
	// What follows in the same chat is sent behind everything that is pending.
	it.telegram.say(it.chat, 'anything else?')
	await eventually(() => it.count('anything else?') >= 1)
	t.ok((await fired()) >= Math.ceil(KILLS / 3))
	t.equal(it.count('water the plants'), await fired())
	t.equal(it.count('water the plants', it.other), 0)
})

void t.test(
	'a reminder set in a chat is delivered there once, though the gateway is killed twice before',
	async (t) => {
		const it = await chats(t, spawnGateway)
		it.telegram.say(it.chat, '/tool heartbeat.create {"at": "in 20 minutes", "prompt": "the tea is ready"}')
		await eventually(() => it.count('next_at') === 1)
		const [set] = await it.heartbeats()
		t.match(set, { deliver: 'origin', every: null, cron: null, paused: false })
		t.ok(Date.parse(set.at) > Date.now() && set.next_at === set.at)
		it.telegram.say(it.other, '/tool heartbeat.list {}')
		await eventually(() => it.count('the tea is ready', it.other) === 1)
		await it.kill()
		await it.start()
		t.match(await it.heartbeats(), [set])
		await it.kill()
		await it.due()
		await it.start()
		await eventually(() => it.count('the tea is ready') === 1)
		await eventually(async () => (await it.heartbeats()).length === 0)
		await it.kill()
		await it.start(startHere)
		// Sent behind everything that is pending in the chat.
		for (const where of [it.chat, it.other]) {
			it.telegram.say(where, 'anything else?')
			await eventually(() => it.count('anything else?', where) === 1)
			t.equal(it.count('the tea is ready', where), 1)
		}
	},
)

void t.test('deliver names a chat, is refused where it is not bound, and can be none', async (t) => {
	const it = await chats(t, startHere)
	const post = (deliver: unknown) =>
		it.request('POST', '/v1/agents/ada/heartbeats', { body: { every: '1h', prompt: 'say hello', deliver } })
	const remove = (id: string) => it.request('DELETE', `/v1/agents/ada/heartbeats/${id}`)
	t.match(await post({ channel: it.channel, chat: '99' }), {
		status: 400,
		body: { message: /chat "99" .* is not bound to agent "ada"/ },
	})
	t.match(await post('origin'), { status: 400, body: { message: /origin is only valid in a chat/ } })
	const wanted = { channel: it.channel, chat: String(it.other.id) }
	// One at a time: the beats of a busy agent are skipped.
	const { body: none } = await post(undefined)
	t.match(none, { deliver: 'none' })
	await remove(none.id)
	const { body: named } = await post(wanted)
	t.match(named, { deliver: wanted })
	await it.kill()
	await it.due()
	await it.start()
	await eventually(() => it.count('say hello', it.other) === 1)
	await eventually(async () =>
		(await it.heartbeats()).every(({ next_at }) => Date.parse(next_at) > Date.now() + HOUR_MS / 2),
	)
	await remove(named.id)

	// As version 0.1.0 stored it.
	await post(wanted)
	await it.kill()
	await changeHeartbeats(it.home, () => ({ destination: undefined }))
	await markFormat(join(it.home, 'data'), 1)
	await it.due()
	await it.start()
	t.match(await it.heartbeats(), [{ deliver: 'none' }])
	await eventually(async () => (await it.runs()).length === 2)
	await eventually(async () => (await it.runs()).every(({ status }) => status === 'completed'))
	// Sent behind everything that is pending in the chat.
	it.telegram.say(it.other, 'anything else?')
	await eventually(() => it.count('anything else?', it.other) === 1)
	t.equal(it.count('say hello', it.other), 1)
	t.equal(it.count('say hello'), 0)
})

void t.test('a heartbeat that fails again and again is reported once', async (t) => {
	const it = await chats(t, startHere)
	// In a chat without a message from a person, one whose sending was interrupted cannot be found.
	it.telegram.say(it.chat, 'good morning')
	await eventually(() => it.count('good morning') === 1)
	// No model server: it refuses every request.
	const refusing = `{ kind: openai, base_url: '${it.telegram.url}', model: m }`
	const absent = "{ kind: openai, base_url: 'http://127.0.0.1:1', model: m }"
	const named = `offline: { kind: offline }, refusing: ${refusing}, absent: ${absent}`
	const providers = `providers: { ${named} }\ndefault_provider: offline\n`
	appendFileSync(join(it.home, 'config/gateway.yaml'), providers)
	const deliver = { channel: it.channel, chat: String(it.chat.id) }
	const body = { every: '1h', prompt: 'water the plants', deliver }
	await it.request('POST', '/v1/agents/ada/heartbeats', { body })
	let beats = 0
	const beat = async (): Promise<void> => {
		await it.kill()
		await it.due()
		await it.start()
		beats++
		await eventually(async () => {
			const runs = (await it.runs()).filter(({ trigger }) => trigger === 'heartbeat')
			return runs.length === beats && runs.every(({ ended_at }) => ended_at !== null)
		})
	}
	const provider = (name: string | null) =>
		it.request('PATCH', '/v1/agents/ada', { body: { config: { provider: name } } })
	for (const name of ['refusing', 'refusing', 'absent', 'refusing']) {
		await provider(name)
		await beat()
	}
	await provider(null)
	await beat()
	await eventually(() => it.count('water the plants') === 1)
	t.equal(it.count('did not work'), 2, 'each reason once')
	await provider('refusing')
	await beat()
	await eventually(() => it.count('did not work') === 3)
	t.equal(it.count('water the plants'), 1)
})
