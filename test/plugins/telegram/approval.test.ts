/** Approvals of tool calls in a chat: who may answer, and a kill of the gateway between the question and the answer. */
import { join } from 'node:path'
import t from 'tap'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { keys } from '../../../plugins/channels/dialogue/records.ts'
import type { Reply, SendProgress } from '../../../plugins/channels/dialogue/records.ts'
import { makeHome, send, startHere } from '../../support/gateway.ts'
import type { Answer, KillableGateway } from '../../support/gateway.ts'
import { addChannel } from '../../support/loop.ts'
import { spawnGateway } from '../../support/process.ts'
import { startTelegram } from '../../support/telegram.ts'
import type { SentMessage, TelegramChat } from '../../support/telegram.ts'
import { eventually } from '../../support/wait.ts'

const ADA = { id: 4201, is_bot: false, first_name: 'Ada' }
const BOB = { id: 4202, is_bot: false, first_name: 'Bob' }

void t.test('a call is executed once after a kill and an approval with edited arguments', async (t) => {
	const telegram = await startTelegram()
	t.teardown(() => telegram.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' }, t)
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = (method: string, path: string, options: { body?: unknown } = {}) =>
		send<Answer>(gateway.url + path, method, options)
	const body = { name: 'ada', config: { tools: { ask: ['memory.store'] } } }
	await request('POST', '/v1/agents', { body })
	const id = await addChannel({ request } as Parameters<typeof addChannel>[0], telegram.token, {
		type: 'chat_a',
		config: { api_root: telegram.url, answer: 'all' },
	})
	const group = telegram.group(-1_001_000_000_077, 'Team')
	const messageIn = (chat: TelegramChat, matches: (text: string) => boolean): Promise<SentMessage> =>
		telegram.waitFor((message) => message.chat.id === chat.id && matches(message.text))
	const mention = `@${telegram.bot.username}`

	// Bound with the code that Ada requested.
	telegram.say(group, `/start@${telegram.bot.username}`, { from: ADA })
	const { text } = await messageIn(group, (one) => one.includes('channels pair'))
	const pairing_code = /channels pair ([0-9A-Z]{8})/.exec(text)?.[1]
	t.equal((await request('POST', '/v1/channels/pair', { body: { pairing_code } })).status, 201)
	const [binding] = (await request('GET', `/v1/channels/${id}/bindings`)).body.bindings
	t.match(binding, { who_may_answer: 'paired', paired_by: String(ADA.id) })

	const ada = telegram.person(ADA.id, 'Ada')
	await request('POST', '/v1/channels/pair', {
		body: { agent_id: 'ada', channel_id: id, external_chat_id: String(ada.id), who_may_answer: 'anyone' },
	})
	telegram.say(ada, '/tool memory.store {"content": "written by the model"}')
	const question = await messageIn(ada, (one) => one.includes('needs approval'))
	t.match(question.text, /memory\.store[^]*"content": "written by the model"/)

	const [{ run_id }] = (await request('GET', '/v1/agents/ada/runs')).body
	const sent = `/v1/audit?run_id=${run_id}&event_type=channel.message_sent`
	await eventually(async () => (await request('GET', sent)).body.events.length === 1)
	await gateway.kill()
	await forgetSending(home, question)
	// Sent while the gateway is down. It must first find out whether the question was sent.
	telegram.say(ada, 'yes')
	gateway = await startHere(home)
	await messageIn(ada, (one) => one.includes('does not answer the approval'))
	telegram.say(ada, 'edit {"text": "wrong field"}')
	await messageIn(ada, (one) => /content.*is required/.test(one))
	telegram.say(ada, 'edit {"content": "written by Ada"}')
	await messageIn(ada, (one) => one.includes('a person changed the arguments'))
	const memories = (await request('GET', '/v1/agents/ada/memory')).body
	t.strictSame(
		memories.memories.map(({ content }: Answer) => content),
		['written by Ada'],
	)
	t.equal(telegram.messages(ada).filter((one) => one.text.includes('needs approval')).length, 1)
	// Sent again, it is an ordinary message.
	telegram.say(ada, 'edit {"content": "written again"}')
	await eventually(async () => (await request('GET', '/v1/agents/ada/runs')).body.length === 2)
	t.equal((await request('GET', '/v1/agents/ada/memory')).body.memories.length, 1)

	// In the group only Ada may answer, until `who_may_answer` changes.
	const notYours = (): number => telegram.messages(group).filter(({ text }) => text.includes('Only the person')).length
	const approvals = (): number => telegram.messages(group).filter(({ text }) => text.includes('needs approval')).length
	telegram.say(group, `${mention}\n/tool memory.store {"content": "in the group"}`, { from: BOB })
	await eventually(() => approvals() === 1)
	telegram.say(group, `${mention} approve`, { from: BOB })
	await eventually(() => notYours() === 1)
	t.equal((await request('GET', '/v1/agents/ada/memory')).body.memories.length, 1)
	telegram.say(group, `${mention} approve`, { from: ADA })
	await eventually(async () => (await request('GET', '/v1/agents/ada/memory')).body.memories.length === 2)
	const path = `/v1/channels/${id}/bindings/${binding.binding_id}`
	t.match(await request('PATCH', path, { body: { who_may_answer: 'anyone' } }), {
		status: 200,
		body: { who_may_answer: 'anyone', paired_by: String(ADA.id) },
	})
	telegram.say(group, `${mention}\n/tool memory.store {"content": "once more"}`, { from: ADA })
	await eventually(() => approvals() === 2)
	telegram.say(group, `${mention} refuse enough`, { from: BOB })
	await messageIn(group, (one) => one.includes('enough') && one.includes('approval_refused'))
	t.match(await request('PATCH', path, { body: {} }), { status: 400 })
	t.match(await request('PATCH', path, { body: { who_may_answer: 'ada' } }), { status: 400 })
	t.equal((await request('GET', '/v1/agents/ada/memory')).body.memories.length, 2)
})

/** As if the gateway had been killed after it sent the question, and before it recorded that. */
async function forgetSending(home: string, { message_id }: SentMessage): Promise<void> {
	await using engine = await openLmdb({ path: join(home, 'data') })
	const { store } = engine
	const [agent] = await Array.fromAsync(store.list<{ uid: string }>(['agents']))
	const [entry] = await Array.fromAsync(store.list<Reply>(keys.all(agent?.value.uid ?? '', 'reply')))
	// The event is written before the reply's record: the gateway may have been killed between the two.
	const question = entry?.value.said ?? entry?.value.saying?.what
	if (!entry || question === undefined) throw new Error('no question was being sent')
	const saying: SendProgress = {
		what: question,
		place: { offset: 0, fence: null },
		ids: [],
		attempt: { markup: 'markdown', max_length: 32_768, mark: String(message_id - 1) },
		kept: false,
	}
	const { agent_uid, channel_id, chat } = entry.value
	await store.commit(entry.key[0], [
		{ key: entry.key, value: { ...entry.value, asked: [], said: null, saying } },
		{ key: keys.sent(agent_uid, channel_id, chat.id), value: undefined },
	])
}
