/** Discord end to end: pairing, mentions, direct messages, previews, disconnects. */
import t from 'tap'
import { startDiscord } from '../../support/discord.ts'
import type { Channel, DiscordServer, Message } from '../../support/discord.ts'
import { png } from '../../support/files.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../../support/gateway.ts'
import { addChannel, waitForConnection } from '../../support/loop.ts'
import { startModelServer } from '../../support/model-server.ts'
import { eventually } from '../../support/wait.ts'
import { withoutAdditions } from '../../support/model-messages.ts'

const CUTS = Number(process.env.CHANNEL_CUTS ?? 10)
const BOTS = Math.min(5, CUTS)

// Each test has its own bot, and mostly waits.
t.jobs = 8

const model = await startModelServer()
t.teardown(() => model.stop())
const gateway = await startGateway({
	config: `default_provider: mock\nproviders:\n  offline:\n    kind: offline\n  mock:\n    kind: openai\n    base_url: ${model.url}\n    api_key: test\n    model: gpt-test\n`,
})
t.teardown(() => gateway.stop())
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
for (const name of ['echo', 'mirror'])
	await gateway.request('POST', '/v1/agents', { body: { name, config: { provider: 'offline' } } })

let botCount = 0

/** Connects a new bot to a new server. */
async function connectBot(
	t: { teardown(end: () => unknown): void },
	change?: (server: DiscordServer) => void,
): Promise<{ server: DiscordServer; channel_id: string }> {
	const server = await startDiscord({ token: `token.of.bot-${botCount++}` })
	t.teardown(() => server.stop())
	change?.(server)
	const channel_id = await addChannel(gateway, server.token, { type: 'discord', config: { api_root: server.url } })
	t.teardown(() => gateway.request('DELETE', `/v1/channels/${channel_id}`))
	await waitForConnection(gateway, channel_id, 'connected')
	return { server, channel_id }
}

async function bind(
	channel_id: string,
	external_chat_id: string,
	agent_id = 'ada',
): ReturnType<TestGateway['request']> {
	return gateway.request('POST', '/v1/channels/pair', { body: { agent_id, channel_id, external_chat_id } })
}

async function runsOf(agent: string): Promise<number> {
	let count = 0
	for (let cursor: string | null = ''; cursor !== null;) {
		const query: string = `agent_id=${agent}&event_type=run.started&limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
		const { body }: Reply<Answer> = await gateway.request('GET', `/v1/audit?${query}`)
		count += body.events.length
		cursor = body.next_cursor
	}
	return count
}

/** The bot's replies to a message. */
function answersTo(server: DiscordServer, channel: Channel, { id }: Message): Message[] {
	return server.written(channel).filter((one) => one.message_reference?.message_id === id)
}

void t.test('a paired channel: the bot answers when it is mentioned', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const { body } = await gateway.request('GET', `/v1/channels/${channel_id}`)
	t.match(body, { type: 'chat_b', connection: 'connected', bot: '@helper', last_error: null })
	const channel = server.addChannel()
	const bound = await bind(channel_id, channel.id)
	t.match(bound, { status: 201, body: { agent_id: 'ada', channel_id, external_chat_id: channel.id } })
	model.on('who are you', 'I am **Ada**, @everyone.')

	server.say(channel, 'nobody asked the bot')
	const question = server.say(channel, 'who are you?', { mention: true })
	await eventually(() => answersTo(server, channel, question).length > 0)
	const [answer] = answersTo(server, channel, question)
	t.equal(answer?.content, 'I am **Ada**, @everyone.')
	t.match(answer?.request, {
		enforce_nonce: true,
		allowed_mentions: { parse: [], replied_user: false },
		message_reference: { fail_if_not_exists: false },
	})
	t.equal(model.requests('nobody asked').length, 0)

	model.on('and he', 'He is **Bob**.')
	const more = { referenced_message: { ...question, content: 'Who is "Bob"?', author: server.addUser('cy', {}) } }
	const reply = server.say(channel, 'and he?', { mention: true, more })
	await eventually(() => answersTo(server, channel, reply).length > 0)
	t.equal(model.requests('[A reply to a message from "cy", quoted here: "Who is \\"Bob\\"?"]\n\n').length, 1)
	t.ok(server.calls.some(({ path }) => path === `/channels/${channel.id}/messages`))
})

void t.test('an approval is asked in the chat, and answered with edited arguments', async (t) => {
	await gateway.request('POST', '/v1/agents', {
		body: { name: 'careful', config: { provider: 'offline', tools: { ask: ['memory.store'] } } },
	})
	const { server, channel_id } = await connectBot(t)
	const channel = server.addDirect()
	t.equal((await bind(channel_id, channel.id, 'careful')).status, 201)
	const written = (what: RegExp): Promise<Message> =>
		eventually(() => server.written(channel).find(({ content }) => what.test(content)) as Message)
	server.say(channel, '/tool memory.store {"content": "written by the model"}')
	t.match((await written(/needs approval/)).content, /memory\.store[^]*"content": "written by the model"/)
	server.say(channel, 'edit {"text": "wrong field"}')
	await written(/content.*is required/)
	server.say(channel, 'edit {"content": "written by a person"}')
	await written(/a person changed the arguments/)
	const { memories } = (await gateway.request('GET', '/v1/agents/careful/memory')).body
	t.match(memories, [{ content: 'written by a person' }])
	t.equal(memories.length, 1)
})

void t.test('the result of a delivery is sent once, as a separate message, and joins the conversation', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const channel = server.addChannel()
	await bind(channel_id, channel.id)
	model.on('the build is red', 'The build of main failed.')
	model.on('whose fault', 'Nobody knows.')
	const body = { slug: 'builds', deliver: { channel: channel_id, chat: channel.id } }
	t.equal((await gateway.request('POST', '/v1/agents/ada/webhooks', { body })).status, 201)
	const delivery = { body: { payload: { news: 'the build is red' } } }
	t.equal((await gateway.request('POST', '/v1/agents/ada/webhooks/builds/test', delivery)).status, 200)
	const results = () => server.written(channel).filter(({ content }) => content === 'The build of main failed.')
	await eventually(() => results().length > 0)
	t.equal(results()[0]?.message_reference, undefined)
	const question = server.say(channel, 'whose fault is it?', { mention: true })
	await eventually(() => answersTo(server, channel, question).length > 0)
	t.equal(results().length, 1)
	const [request] = model.requests('whose fault')
	const earlier = request?.messages.filter((one) => one.role === 'assistant').map(({ content }) => content)
	t.strictSame(earlier, ['The build of main failed.'])
})

void t.test('a change of the rules for answers does not apply to earlier messages', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const channel = server.addChannel()
	await bind(channel_id, channel.id, 'mirror')
	const first = server.say(channel, 'first', { mention: true })
	await eventually(() => answersTo(server, channel, first).length > 0)
	const unanswered = [server.say(channel, 'among us'), server.say(channel, 'nothing for bots')]
	// Sent after them, so they have been received.
	const second = server.say(channel, 'second', { mention: true })
	await eventually(() => answersTo(server, channel, second).length > 0)
	await gateway.request('PATCH', `/v1/channels/${channel_id}`, { body: { config: { answer: 'all' } } })
	await waitForConnection(gateway, channel_id, 'connected')
	const third = server.say(channel, 'third, to everybody')
	await eventually(() => answersTo(server, channel, third).length > 0)
	for (const message of unanswered) t.strictSame(answersTo(server, channel, message), [])
})

void t.test('a paired server: all its channels and threads, each with its own conversation', async (t) => {
	const { server, channel_id } = await connectBot(t)
	t.equal((await bind(channel_id, server.guild_id)).status, 201)
	const channel = server.addChannel()
	const thread = server.addThread(channel)
	model.on('remember tea', 'Noted.')
	model.on('what was it', 'I do not know.')
	const first = server.say(channel, 'remember tea', { mention: true })
	await eventually(() => answersTo(server, channel, first).length > 0)
	const second = server.say(thread, 'what was it?', { mention: true })
	await eventually(() => answersTo(server, thread, second).length > 0)
	t.equal(withoutAdditions(model.requests('what was it')[0]?.messages).length, 1)
})

void t.test('a direct message: /start returns a code, which pairs the chat', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const direct = server.addDirect()
	const texts = (): string[] => server.written(direct).map(({ content }) => content)
	server.say(direct, '/start')
	await eventually(() => texts().length === 1)
	const pairing_code = /`([0-9A-Z]{8})`/.exec(texts()[0] ?? '')?.[1]
	const paired = await gateway.request('POST', '/v1/channels/pair', { body: { pairing_code, agent_id: 'ada' } })
	t.match(paired, { status: 201, body: { agent_id: 'ada', channel_id, external_chat_id: direct.id } })
	await eventually(() => texts().length === 2)
	model.on('in private', 'Just between us.')
	server.say(direct, 'in private?')
	await eventually(() => texts().includes('Just between us.'))
	t.equal(server.written(direct).at(-1)?.message_reference, undefined)
	server.say(direct, '/whoami')
	await eventually(() => texts().length === 4)
	t.match(texts()[3], direct.id)
})

void t.test('an unfinished answer is a message that grows', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const channel = server.addChannel()
	await bind(channel_id, channel.id)
	const text = 'It is a long story that takes its time to tell, word by word.'
	model.on('tell me a story', { text, chunkSize: 6, pauseMs: 250 })
	const question = server.say(channel, 'tell me a story', { mention: true })
	await eventually(() => answersTo(server, channel, question)[0]?.content === text)
	const [answer, ...more] = answersTo(server, channel, question)
	t.strictSame(more, [], 'it is one message')
	t.ok((answer?.drafts.length ?? 0) > 0, `it was edited ${answer?.drafts.length} times`)
	for (const draft of answer?.drafts ?? []) t.ok(text.startsWith(draft), draft)
	t.ok(server.calls.some(({ path }) => path === `/channels/${channel.id}/typing`))
})

void t.test('without the message content intent the channel reports that, and works', async (t) => {
	const { server, channel_id } = await connectBot(t, (server) => (server.contentAllowed = false))
	const direct = server.addDirect()
	await eventually(
		async () => (await gateway.request('GET', `/v1/channels/${channel_id}`)).body.last_error,
		(error) => /Message Content Intent/.test(error),
	)
	server.say(direct, 'hello')
	await eventually(() => server.written(direct).length > 0)
	t.equal((await waitForConnection(gateway, channel_id, 'connected')).connection, 'connected')
})

void t.test('a token that Discord refuses shows in the status until it is replaced', async (t) => {
	const { server, channel_id } = await connectBot(t)
	const { body } = await gateway.request('GET', `/v1/channels/${channel_id}`)
	server.token = 'a.new.one'
	server.close(4004)
	t.match(await waitForConnection(gateway, channel_id, 'error'), { last_error: /Reset Token/ })
	const path = `/v1/vault/secrets/${body.bot_token_ref}`
	t.equal((await gateway.request('PUT', path, { body: { value: server.token } })).status, 200)
	await waitForConnection(gateway, channel_id, 'connected')
	const logins = server.calls.filter((call) => call.path === '/gateway/bot')
	t.equal(logins.length, 2, 'the refused token was not retried')
})

void t.test(
	`no message is lost or answered twice through ${CUTS} disconnects`,
	{ timeout: 60_000 + CUTS * 3_000 },
	async (t) => {
		let cuts = 0
		const bots = await Promise.all(Array.from({ length: BOTS }, () => connectBot(t)))
		const asked: { server: DiscordServer; channel: Channel; message: Message }[] = []
		await Promise.all(
			bots.map(async ({ server, channel_id }, bot) => {
				await bind(channel_id, server.guild_id, 'echo')
				const ways = [server.cut, server.tellToReconnect, () => server.close(4000), server.cut]
				while (cuts < CUTS) {
					const cut = cuts++
					const channel = server.addChannel()
					const ask = (text: string, told: boolean): Message => {
						const message = server.say(channel, text, { mention: true, told })
						asked.push({ server, channel, message })
						return message
					}
					const how = (['after', 'before', { status: 500 }] as const)[cut % 3]
					if (how) server.fail({ method: 'POST', path: new RegExp(`${channel.id}/messages`), how })
					const late = ask(`question ${bot} ${cut} late`, false)
					const early = ask(`question ${bot} ${cut} early`, true)
					server.tell(late) // out of order
					server.tell(early) // a duplicate
					// Every tenth cut ends the session, so missed messages must be requested.
					if (cut % 10 === 9) server.invalidate()
					else ways[cut % ways.length]?.()
					ask(`question ${bot} ${cut} meanwhile`, cut % 10 !== 9)
					await eventually(() => server.connected === 1)
				}
			}),
		)
		const unanswered = (): string[] =>
			asked
				.filter(({ server, channel, message }) => answersTo(server, channel, message).length === 0)
				.map(({ message }) => message.content)
		await eventually(unanswered, ({ length }) => length === 0)
		t.strictSame(unanswered(), [], 'each question has its answer')
		// These are all duplicates.
		for (const { server, message } of asked) server.tell(message)
		for (const { server, channel_id } of bots) {
			const last = server.addChannel()
			const message = server.say(last, 'the last question', { mention: true })
			await eventually(() => answersTo(server, last, message).length > 0)
			t.equal((await waitForConnection(gateway, channel_id, 'connected')).connection, 'connected')
		}
		const twice = asked.filter(({ server, channel, message }) => answersTo(server, channel, message).length !== 1)
		t.strictSame(
			twice.map(({ message }) => message.content),
			[],
			'each question has one answer',
		)
		t.equal(await runsOf('echo'), asked.length + bots.length, 'each question has one run')
		t.equal(asked.length, CUTS * 3)
	},
)

void t.test('attachments reach the agent; the prompt lists those not loaded', async (t) => {
	const { server, channel_id } = await connectBot(t)
	await gateway.request('POST', '/v1/agents', { body: { name: 'eyes', config: { provider: 'offline' } } })
	const channel = server.addChannel()
	await bind(channel_id, channel.id, 'eyes')
	server.files.set('cat.png', png('cat'))
	const file = (name: string): object => ({
		id: '1',
		filename: name,
		content_type: 'image/png',
		size: png('cat').length,
		url: `${server.url}/files/${name}`,
	})
	server.say(channel, 'look', { mention: true, more: { attachments: [file('cat.png'), file('gone.png')] } })
	const run: Answer = await eventually(
		async () => (await gateway.request('GET', '/v1/agents/eyes/runs')).body[0],
		(one: Answer) => one?.status === 'completed',
	)
	t.match(run.attachments, [{ type: 'image', name: 'cat.png' }])
	t.match(run.prompt, /look\n\n\[Attached but not loaded: an image "gone\.png" \(Discord answered with status 404\)\]$/)
})
