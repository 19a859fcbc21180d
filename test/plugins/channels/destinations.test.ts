/** Results of runs that no chat message started: which are sent to a chat, how they join its conversation, why one is not sent. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Link, OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { addChannel, loopFiles, openLoop, waitForConnection } from '../../support/loop.ts'
import type { LoopConnection } from '../../support/loop.ts'
import { startModelServer } from '../../support/model-server.ts'
import { providersAt } from '../../support/providers.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const loop = openLoop()
const model = await startModelServer()
t.teardown(() => model.stop())
const rest = `${providersAt({ mock: model.url })}default_provider: mock\n`
const gateway = await startGateway({ config: `plugins: {loop: true}\n${rest}`, files: loopFiles() })
t.teardown(() => gateway.stop())
const { request } = gateway
await request('POST', '/v1/agents', { body: { name: 'ada' } })

const CONNECTED = 'This chat is now connected'
let made = 0

/** A chat of ada on a new channel, and a webhook that delivers its results there. */
async function open(...acts: ((link: Link) => unknown)[]) {
	const n = ++made
	const [token, chat, slug] = [`destination-${n}`, `chat-${n}`, `hook-${n}`]
	loop.script(token, ...acts)
	const channel = await addChannel(gateway, token)
	await waitForConnection(gateway, channel, 'connected')
	const { body: binding } = await request('POST', '/v1/channels/pair', {
		body: { agent_id: 'ada', channel_id: channel, external_chat_id: chat, who_may_answer: 'anyone' },
	})
	const hook = { slug, deliver: { channel, chat } }
	const { status, body } = await request('POST', '/v1/agents/ada/webhooks', { body: hook })
	if (status !== 201) throw new Error(JSON.stringify(body))
	return {
		channel,
		chat,
		slug,
		/** The chat's first conversation. */
		conversation: `channel:${binding.binding_id}`,
		/** Delivers to the webhook. Returns the id of the run. */
		post: async (words: string): Promise<string> => {
			const options = { body: { payload: { words } } }
			return (await request('POST', `/v1/agents/ada/webhooks/${slug}/test`, options)).body.run_id
		},
		say: async (words: string) => ((await loop.connected(token)) as LoopConnection).say(chat, words),
		/** The texts sent to the chat, without the gateway's message after the binding. */
		sent: (): string[] =>
			loop.sent.filter((one) => one.token === token).flatMap(({ text }) => (text.startsWith(CONNECTED) ? [] : [text])),
		unbind: () => request('DELETE', `/v1/channels/${channel}/bindings/${binding.binding_id}`),
	}
}

async function statusOf(run_id: string): Promise<string> {
	return (await request('GET', `/v1/runs/${run_id}`)).body.status
}

/** The payloads of the events of one type about a run. */
async function eventsAbout(run_id: string, type: string): Promise<Answer[]> {
	const { events } = (await request('GET', `/v1/audit?event_type=${type}&limit=500`)).body
	return events.map(({ payload }: Answer) => payload).filter((payload: Answer) => payload.run_id === run_id)
}

async function undelivered(run_id: string): Promise<Answer> {
	const [event] = await eventually(
		() => eventsAbout(run_id, 'message.undelivered'),
		({ length }) => length > 0,
	)
	return event
}

void t.test('a result is sent to the chat, and becomes part of its conversation', async (t) => {
	const it = await open()
	model.on('disk of web-1', 'The disk of web-1 is full.')
	model.on('which machine', 'It is web-1.')
	const run_id = await it.post('disk of web-1')
	await eventually(() => it.sent().length === 1)
	t.strictSame(it.sent(), ['The disk of web-1 is full.'])
	await it.say('which machine?')
	await eventually(() => it.sent().length === 2)
	t.strictSame(it.sent().slice(1), ['It is web-1.'])

	const [asked] = model.requests('which machine')
	const [cause, result, , question] = asked?.messages.filter(({ role }) => role !== 'system') ?? []
	t.match(cause, {
		role: 'user',
		content: /^\[Remark of the gateway: The result of a run that your webhook started \(/,
	})
	t.match(cause?.content, new RegExp(run_id))
	t.notMatch(cause?.content, /disk of web-1/, 'the payload of the delivery is not repeated')
	t.match(result, { role: 'assistant', content: 'The disk of web-1 is full.' })
	t.match(question, { role: 'user', content: /which machine\?$/ })

	const [run] = model.requests('disk of web-1')
	t.match(
		JSON.stringify(run?.messages),
		/your answer is sent to a direct chat on Loop, unless it is exactly NOTHING_TO_SAY/,
	)
	const { runs } = { runs: (await request('GET', '/v1/agents/ada/runs')).body }
	t.equal(runs.length, 2, 'the addition to the conversation is not a run')
	const { conversation } = runs.find(({ trigger }: Answer) => trigger === 'loop')
	const { body } = await request('GET', `/v1/agents/ada/conversations/${encodeURIComponent(conversation)}`)
	const contents = body.turns.map(({ messages }: Answer) => messages.map(({ content }: Answer) => content))
	t.strictSame(contents, [['which machine?', 'It is web-1.'], ['The disk of web-1 is full.']])
})

void t.test('a failed run is started again once; its answer goes to the same chat', async (t) => {
	const it = await open()
	const failing = { status: 401, message: 'no such key' }
	model.on('disk of web-2', failing, failing, 'The disk of web-2 is full.')
	const retry = (run_id: string) => request('POST', `/v1/runs/${run_id}/retry`)
	const ended = (run_id: string, status: string) => eventually(async () => (await statusOf(run_id)) === status)

	const first = await it.post('disk of web-2')
	await ended(first, 'failed')
	const { status, body: second } = await retry(first)
	t.equal(status, 200)
	t.match(second, { agent: 'ada', trigger: 'webhook', prompt: /disk of web-2/ })
	await ended(second.run_id, 'failed')
	const { body: third } = await retry(first)
	t.not(third.run_id, second.run_id, 'the second run has failed, too')
	t.equal((await retry(second.run_id)).body.run_id, third.run_id, 'is not started twice')
	await ended(third.run_id, 'completed')
	await eventually(() => it.sent().at(-1) === 'The disk of web-2 is full.')
	t.equal((await retry(first)).body.run_id, third.run_id)
	t.match(await eventsAbout(third.run_id, 'run.retried'), [{ retried: second.run_id }])

	const done = await retry(third.run_id)
	t.equal(done.status, 409)
	t.match(done.body.message, /is completed; only a failed or stopped run/)
	model.on('how full', failing)
	await it.say('how full is it?')
	const asked = await eventually(
		async () => (await request('GET', '/v1/agents/ada/runs?limit=1')).body[0],
		({ status, trigger }: Answer) => trigger === 'loop' && status === 'failed',
	)
	const chat = await retry(asked.run_id)
	t.equal(chat.status, 409)
	t.match(chat.body.message, /answers a message or request \(loop\)/)
})

void t.test('an answer of exactly NOTHING_TO_SAY is not sent', async (t) => {
	const it = await open()
	model.on('nothing new', ' NOTHING_TO_SAY\n')
	model.on('something new', 'It is not NOTHING_TO_SAY this time.')
	const run_id = await it.post('nothing new')
	await eventually(async () => (await statusOf(run_id)) === 'completed')
	await it.post('something new')
	// A chat's messages are sent in order, so an earlier one would have been sent by now.
	await eventually(() => it.sent().length > 0)
	t.strictSame(it.sent(), ['It is not NOTHING_TO_SAY this time.'])
	t.strictSame(await eventsAbout(run_id, 'message.undelivered'), [])
	await it.say('what is up?')
	await eventually(() => model.requests('what is up?').length === 1)
	t.notMatch(JSON.stringify(model.requests('what is up?')[0]?.messages), /"NOTHING_TO_SAY"| NOTHING_TO_SAY\\n/)
})

void t.test('an unbound chat receives nothing, if unbound during the run or before', async (t) => {
	const it = await open()
	model.on('may I', { tools: [{ name: 'ask', arguments: { question: 'May I?' } }] }, 'Done as told.')
	const run_id = await it.post('may I')
	await eventually(() => it.sent().length === 1)
	t.strictSame(it.sent(), ['May I?'])
	const { body: questions } = await request('GET', '/v1/agents/ada/questions')
	const { question_id } = questions.find((one: Answer) => one.run_id === run_id)
	await it.unbind()
	await request('POST', `/v1/agents/ada/ask-responses/${question_id}`, { body: { answer: 'yes' } })
	const about = { channel_id: it.channel, chat_id: it.chat, code: 'unbound' }
	t.match(await undelivered(run_id), about)
	t.equal(await statusOf(run_id), 'completed')

	const later = await it.post('may I')
	t.match(await undelivered(later), about)
	await eventually(async () => (await statusOf(later)) !== 'started')
	t.strictSame(it.sent(), ['May I?'])
})

void t.test('a deleted channel receives nothing', async (t) => {
	const it = await open()
	model.on('shall I', { tools: [{ name: 'ask', arguments: { question: 'Shall I?' } }] }, 'Done.')
	const run_id = await it.post('shall I')
	await eventually(() => it.sent().length === 1)
	await request('DELETE', `/v1/channels/${it.channel}`)
	t.match(await undelivered(run_id), { channel_id: it.channel, chat_id: it.chat, code: 'deleted' })
})

void t.test('a result that the platform refuses is reported, and not part of the conversation', async (t) => {
	const refusals: string[] = []
	const it = await open(() => ({
		name: '@refusing',
		send: (message: { text: string }) => {
			if (message.text.startsWith(CONNECTED)) return { id: 'm1' }
			refusals.push(message.text)
			throw Object.assign(new Error('the person blocked the bot'), { code: 'refused' })
		},
		close: async () => {},
	}))
	model.on('the news', 'There is news.')
	const run_id = await it.post('the news')
	t.match(await undelivered(run_id), { code: 'refused', message: /blocked the bot/ })
	t.strictSame(refusals, ['There is news.'])
	const saidEvents = async (): Promise<Answer[]> => {
		const { events } = (await request('GET', '/v1/audit?event_type=message.said&limit=500')).body
		return events.filter(({ payload }: Answer) => payload.content === 'There is news.')
	}
	const [event] = await saidEvents()
	await eventually(async () => {
		const path = `/v1/agents/ada/conversations/${encodeURIComponent(event.payload.conversation)}`
		return (await request('GET', path)).status === 404
	})
})

void t.test('an answer that a revoked token cannot send is sent with the next token', async (t) => {
	let isRevoked = true
	const sent: string[] = []
	const connect = (link: Link) => ({
		name: '@revoked',
		send: async ({ text }: OutgoingMessage) => {
			if (!text.startsWith(CONNECTED) && isRevoked) {
				const error = link.error('refused', 'the token was revoked')
				link.lost(error)
				throw error
			}
			sent.push(text)
			return { id: `m${sent.length}` }
		},
		close: async () => {},
	})
	const it = await open(connect, connect)
	model.on('the harvest', 'The harvest is in.')
	const run_id = await it.post('the harvest')
	t.match(await waitForConnection(gateway, it.channel, 'error'), { last_error: 'the token was revoked' })
	isRevoked = false
	await request('PATCH', `/v1/channels/${it.channel}`, { body: {} })
	await eventually(() => sent.includes('The harvest is in.'))
	t.strictSame(await eventsAbout(run_id, 'message.undelivered'), [])
})

void t.test('a connected channel shows why messages are delayed, until it gets another token', async (t) => {
	const it = await open(() => ({
		name: '@limited',
		send: async ({ text }: OutgoingMessage) => {
			if (text.startsWith(CONNECTED)) return { id: 'm1' }
			throw Object.assign(new Error('too many messages'), { code: 'limited', retry_after_ms: 3_600_000 })
		},
		close: async () => {},
	}))
	model.on('the weather', 'It rains.')
	await it.post('the weather')
	const read = async () => (await request('GET', `/v1/channels/${it.channel}`)).body
	const shown = await eventually(read, ({ last_error }: Answer) => last_error !== null)
	t.match(shown, { connection: 'connected', last_error: 'messages are delayed: too many messages' })
	const errors = async (): Promise<Answer[]> =>
		(await request('GET', '/v1/audit?event_type=channel.error&limit=500')).body.events
	const found = await eventually(errors, (all) => all.some(({ payload }) => payload.channel_id === it.channel))
	t.match(
		found.filter(({ payload }) => payload.channel_id === it.channel),
		[{ payload: { error: 'messages are delayed: too many messages' } }],
	)

	const secret = { name: 'OTHER_BOT', value: 'bot-without-limit', policy_label: 'channel' }
	await request('POST', '/v1/vault/secrets', { body: secret })
	await request('PATCH', `/v1/channels/${it.channel}`, { body: { bot_token_ref: secret.name } })
	const sent = await eventually(
		() => loop.sent.filter(({ token }) => token === secret.value),
		(all) => all.length > 0,
	)
	t.match(sent, [{ text: 'It rains.' }], 'a new token is tried at once')
	await eventually(read, ({ last_error }: Answer) => last_error === null)
})

void t.test('of two questions in a chat, a reply answers the latest', async (t) => {
	const it = await open()
	const ask = (question: string) => ({ tools: [{ name: 'ask', arguments: { question } }] })
	model.on('book a table', ask('For how many?'), 'Booked.')
	model.on('the oven is hot', ask('Switch it off?'), 'Switched off.')
	await it.say('book a table')
	await eventually(() => it.sent().includes('For how many?'))
	const run_id = await it.post('the oven is hot')
	await eventually(() => it.sent().includes('Switch it off?'))
	await it.say('yes')
	await eventually(() => it.sent().includes('Switched off.'))
	t.match(await eventsAbout(run_id, 'message.undelivered'), [])
	t.notOk(it.sent().includes('Booked.'))
	await it.say('four')
	await eventually(() => it.sent().includes('Booked.'))
})

void t.test('a message that a caller sends to a chat becomes part of its conversation', async (t) => {
	const it = await open()
	const post = (content: unknown, { conversation = it.conversation, key = '' } = {}) =>
		request('POST', `/v1/agents/ada/conversations/${encodeURIComponent(conversation)}/messages`, {
			body: { content },
			...(key !== '' && { headers: { 'idempotency-key': key } }),
		})
	const first = await post('The backup is complete.', { key: 'backup-1' })
	t.match(first, { status: 200, body: { conversation: it.conversation, channel_id: it.channel, chat_id: it.chat } })
	t.strictSame((await post('The backup is complete.', { key: 'backup-1' })).body, first.body)
	t.match(await post('It failed.', { key: 'backup-1' }), { status: 409, body: { code: 'idempotency_mismatch' } })
	model.on('which backup', 'The one of tonight.')
	await eventually(() => it.sent().length > 0)
	await it.say('which backup?')
	await eventually(() => it.sent().length > 1)
	t.strictSame(it.sent(), ['The backup is complete.', 'The one of tonight.'])
	const [asked] = model.requests('which backup')
	const [cause, message] = asked?.messages.filter(({ role }) => role !== 'system') ?? []
	t.match(cause, { role: 'user', content: /^\[Remark of the gateway: A message was sent to this chat in your name/ })
	t.match(message, { role: 'assistant', content: 'The backup is complete.' })
	const runs: Answer[] = (await request('GET', '/v1/agents/ada/runs')).body
	t.notOk(runs.some(({ run_id }) => run_id === first.body.message_id))

	// The first conversation identifies the chat even after it has begun another one.
	await it.say('/new')
	await eventually(() => it.sent().length === 3)
	const later = await post('Another backup.')
	t.match(later.body, { chat_id: it.chat, conversation: new RegExp(`^${it.conversation}:`) })
	await eventually(() => it.sent().includes('Another backup.'))
	// Not a result, so the text has no special meaning.
	await post('NOTHING_TO_SAY')
	await eventually(() => it.sent().includes('NOTHING_TO_SAY'))

	for (const conversation of ['channel:0197a4c2-6f0d-7b5e-8f0a-3d0a4c2b1e90', 'no-chat'])
		t.match(await post('Hello.', { conversation }), { status: 404, body: { code: 'not_found' } })
	for (const content of ['', ' \n', 'a'.repeat(64 * 1024 + 1), 7])
		t.match(await post(content), { status: 400, body: { errors: [{ path: 'content' }] } })
	await it.unbind()
	t.match(await post('Hello.'), { status: 409, body: { message: /is not bound to agent "ada"/ } })
})

void t.test('without the plugin channels, a result is reported as undelivered', async (t) => {
	const it = await open()
	model.on('all alone', 'Nobody reads this.')
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	writeFileSync(
		join(gateway.home, 'config/gateway.yaml'),
		`plugins: {channels: false, telegram: false, discord: false}\n${rest}`,
	)
	await stream.waitFor('config.reloaded', 1)
	const run_id = await it.post('all alone')
	t.match(await undelivered(run_id), { channel_id: it.channel, chat_id: it.chat, code: 'unavailable' })
	await eventually(async () => (await statusOf(run_id)) === 'completed')
	t.strictSame(it.sent(), [])
	const body = { slug: 'other', deliver: { channel: it.channel, chat: it.chat } }
	t.match(await request('POST', '/v1/agents/ada/webhooks', { body }), {
		status: 400,
		body: { message: /plugin "channels" is switched off/, errors: [{ path: 'deliver' }] },
	})
})
