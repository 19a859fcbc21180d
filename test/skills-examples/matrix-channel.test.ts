/**
 * The example of a channel in a running gateway, as its pages describe: installation, pairing and messages; its code is edited, broken,
 * switched off and on while another channel is used; no message is lost during a restart. Also the channel of
 * docs/writing-a-channel.md.
 */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { makeHome, startGateway } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { startHomeserver } from '../support/matrix.ts'
import type { Shown } from '../support/matrix.ts'
import { openStream } from '../support/sse.ts'
import type { TestStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const root = new URL('../../', import.meta.url)
const source = new URL('skills-examples/matrix-channel/', root)
const textOf = (path: string): string => readFileSync(new URL(path, root), 'utf8')

// The homeserver of the tests has no rate limit. It returns so few events at once that the channel must request more.
const pace = 'pace: { chat_ms: 2000, channel_ms: 100 }'
const index = textOf('skills-examples/matrix-channel/index.ts').replace(pace, 'pace: { chat_ms: 0, channel_ms: 0 }')
const incoming = textOf('skills-examples/matrix-channel/incoming.ts').replace('limit: 50', 'limit: 5')

const server = await startHomeserver()
t.teardown(() => server.close())
const alice = server.user('alice', 'Alice')
const gateway = await startGateway({ config: 'plugins: {}\n' })
t.teardown(() => gateway.stop())
const stream = await openStream(gateway.url)
t.teardown(() => stream.close())
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

function write(home: string, path: string, text = ''): void {
	mkdirSync(join(home, path, '..'), { recursive: true })
	writeFileSync(join(home, path), text)
}

/** Copies the example into a home. `code`: the text of its index.ts. */
function install(home: string, name = 'matrix-channel', code = index): void {
	cpSync(source, join(home, 'plugins', name), { recursive: true })
	write(home, `plugins/${name}/index.ts`, code)
	write(home, `plugins/${name}/incoming.ts`, incoming)
}

/** Writes gateway.yaml, and waits until this plugin has started. */
async function switchOn(plugin: string, yaml: string): Promise<void> {
	const isStart = ({ event_type, payload }: EventEnvelope): boolean =>
		event_type === 'plugin.started' && payload.plugin === plugin
	const before = stream.events.filter(isStart).length
	write(gateway.home, 'config/gateway.yaml', yaml)
	await stream.waitFor(isStart, before + 1)
}

function ofChannel(event_type: string, channel_id: string): (event: EventEnvelope) => boolean {
	return (event) => event.event_type === event_type && event.payload.channel_id === channel_id
}

/** Creates a bot on the homeserver, a connected channel for it, and a room of the bot and Alice that is bound to the agent `ada`. */
async function connectBot(gateway: TestGateway, stream: TestStream, type: string, name: string) {
	const bot = server.user(name, name)
	const secret = { name: `${name.toUpperCase()}_TOKEN`, value: server.token(bot) }
	await gateway.request('POST', '/v1/vault/secrets', { body: secret })
	const channel = { type, bot_token_ref: secret.name, config: { api_root: server.url } }
	const { id: channel_id } = (await gateway.request('POST', '/v1/channels', { body: channel })).body
	await stream.waitFor(ofChannel('channel.connected', channel_id))
	const room = server.room(alice, bot)
	const binding = { agent_id: 'ada', channel_id, external_chat_id: room }
	const { status, body } = await gateway.request('POST', '/v1/channels/pair', { body: binding })
	if (status !== 201) throw new Error(`not bound: ${JSON.stringify(body)}`)
	return { bot, channel_id, room }
}

/** Waits for the bot's message that contains these words. */
async function botMessage(room: string, bot: string, words: string): Promise<Shown> {
	return (await eventually(() => server.shown(room, bot).find(({ text }) => text.includes(words)))) as Shown
}

function blocksOf(page: string, language: string): string[] {
	return [...page.matchAll(/```(\w+)[^\n]*\n(.*?)```/gs)].flatMap(([, marked, text = '']) =>
		marked === language ? text : [],
	)
}

/** Runs the commands of a page after replacing words. Returns the last JSON value of their output. */
async function run(commands: string | undefined, replaced: Record<string, string> = {}): Promise<Answer> {
	const all = { 'http://127.0.0.1:3000': gateway.url, '~/.svc': gateway.home, ...replaced }
	const text = Object.entries(all).reduce((now, [from, to]) => now.replaceAll(from, to), commands ?? 'false')
	const { stdout } = await promisify(execFile)('sh', ['-ec', text], { cwd: fileURLToPath(root) })
	return stdout === '' ? undefined : JSON.parse(stdout.slice(stdout.lastIndexOf('}{') + 1))
}

const code = /\b[0-9A-Z]{8}\b/

void t.test('the commands of the README install, pair and use the example', async (t) => {
	const page = textOf('skills-examples/matrix-channel/README.md')
	const [logIn, copy, addChannel, pair, ...others] = blocksOf(page, 'sh')
	t.strictSame(others, [], 'every command of the page is run')
	const bot = server.user('helper', 'helper')
	const replaced = { 'https://matrix.example.org': server.url }
	const { access_token } = await run(logIn, replaced)
	await run(copy)
	install(gateway.home)
	await switchOn('matrix-channel', blocksOf(page, 'yaml')[0] ?? '')
	const { id: channel_id, ...made } = await run(addChannel, { ...replaced, syt_aGVscGVy_0123456789: access_token })
	t.match(made, { type: 'matrix', status: 'active' })
	await stream.waitFor(ofChannel('channel.connected', channel_id))
	t.match((await gateway.request('GET', `/v1/channels/${channel_id}`)).body, { connection: 'connected', bot })

	// Alice creates a room, invites the bot and writes before the bot has joined.
	const room = server.room(alice)
	server.invite(room, bot, alice)
	server.say(room, alice, '/start')
	const hint = await botMessage(room, bot, 'pairing_code')
	const paired = await run(pair, { K7QF2M9X: code.exec(hint.text)?.[0] ?? '' })
	t.match(paired, { agent_id: 'ada', channel_id, external_chat_id: room })
	await botMessage(room, bot, 'ada')

	server.say(room, alice, 'What is **two** & three?')
	const answer = await botMessage(room, bot, 'two')
	t.strictSame(answer.mentions, {}, 'an answer notifies no user')
	t.match(answer.text, /What is .*two.* & three\?/)
	server.say(room, alice, { algorithm: 'm.megolm.v1.aes-sha2', ciphertext: 'AwgAE' }, 'm.room.encrypted')
	const elsewhere = await botMessage(room, bot, 'Please write it as text')
	const { body: audit } = await gateway.request('GET', '/v1/audit?limit=500')
	t.notOk(JSON.stringify(audit).includes(access_token), 'no event shows the token')

	// In a group, the bot ignores other messages, and answers a mention with a reply.
	const group = server.room(alice, bot, server.user('carol', 'Carol'))
	await gateway.request('POST', '/v1/channels/pair', { body: { agent_id: 'ada', channel_id, external_chat_id: group } })
	const lunch = server.say(group, alice, 'lunch?')
	const mention = { msgtype: 'm.text', body: 'helper: and dinner?', 'm.mentions': { user_ids: [bot] } }
	const asked = server.say(group, alice, mention)
	const reply = await botMessage(group, bot, 'dinner')
	t.equal(reply.reply_to, asked)
	t.notOk(reply.text.includes('helper:'))
	t.notOk(server.shown(group, bot).some(({ text }) => text.includes('lunch')))

	// The agent receives the message to which another one replies.
	const replyTo = (event_id: string, body: string): string =>
		server.say(group, alice, { ...mention, body, 'm.relates_to': { 'm.in_reply_to': { event_id } } })
	const messageWith = (body: string) =>
		stream.waitFor(({ event_type, payload }) => event_type === 'message.user' && String(payload.content).includes(body))
	const receivedReply = async (event_id: string, body: string): Promise<unknown> => {
		const received = messageWith(body)
		replyTo(event_id, body)
		return (await received).payload.content
	}
	t.match(await receivedReply(lunch, 'who said it?'), /A reply to a message from "Alice", quoted here: "lunch\?"/)
	t.match(await receivedReply(reply.id, 'what was it?'), /A reply to your message, quoted here: ".*dinner/)
	const image = server.say(group, alice, { msgtype: 'm.image', body: 'cat.jpg', url: 'mxc://matrix.test/cat' })
	t.match(await receivedReply(image, 'what is on it?'), /\[an image\]/)
	t.notMatch(await receivedReply(elsewhere.id, 'what is there?'), /quoted here/, 'an event of another room')
})

void t.test('its code is edited, broken, switched off and on while another channel is used', async (t) => {
	const both = (matrix: boolean): string => `plugins: {matrix-channel: ${matrix}, other-channel: true}\n`
	const other = index
		.replace("name: 'matrix-channel'", "name: 'other-channel'")
		.replace("type: 'matrix'", "type: 'other'")
	const { home } = gateway
	install(home)
	install(home, 'other-channel', other)
	await switchOn('other-channel', both(true))
	const mine = await connectBot(gateway, stream, 'matrix', 'mine')
	const theirs = await connectBot(gateway, stream, 'other', 'theirs')
	const isConnected = ofChannel('channel.connected', mine.channel_id)

	// Messages on the other channel, until the end of the test.
	let isOver = false
	let rounds = 0
	const talk = (async () => {
		for (; !isOver; rounds++) {
			server.say(theirs.room, alice, `round ${rounds} goes`)
			await botMessage(theirs.room, theirs.bot, `round ${rounds} goes`)
			await pause(100)
		}
	})()
	talk.catch(() => {}) // it is awaited at the end
	const nextRound = async (): Promise<void> => {
		const seen = rounds
		await eventually(() => rounds > seen)
	}
	const ask = (text: string): Promise<Shown> => {
		server.say(mine.room, alice, text)
		return botMessage(mine.room, mine.bot, text)
	}
	t.equal((await ask('first of all')).msgtype, 'm.text')

	// Edited: the new code gives the next answer.
	write(home, 'plugins/matrix-channel/index.ts', index.replace("msgtype: 'm.text'", "msgtype: 'm.notice'"))
	await stream.waitFor(isConnected, 2)
	t.equal((await ask('second to that')).msgtype, 'm.notice', 'the edited code answers')
	await nextRound()

	// Broken, in one of its files: the former code continues.
	const failed = stream.waitFor('plugin.failed')
	write(home, 'plugins/matrix-channel/homeserver.ts', 'export const oh = {{{')
	await failed
	t.equal((await ask('third time lucky')).msgtype, 'm.notice', 'the former code answers')
	t.equal(stream.events.filter(isConnected).length, 2, 'on the same connection')
	await nextRound()
	install(home)
	await stream.waitFor(isConnected, 3)
	t.equal((await ask('fourth and fixed')).msgtype, 'm.text')

	// Off: no message is answered or lost. On: the messages from meanwhile are answered.
	write(home, 'config/gateway.yaml', both(false))
	const status = async (): Promise<string> =>
		(await gateway.request('GET', `/v1/channels/${mine.channel_id}`)).body.connection
	await stream.waitFor(ofChannel('channel.disconnected', mine.channel_id), 3)
	t.equal(await status(), 'disabled')
	server.say(mine.room, alice, 'is anybody there')
	await nextRound()
	t.notOk(server.shown(mine.room, mine.bot).some(({ text }) => text.includes('anybody')))
	write(home, 'config/gateway.yaml', both(true))
	await botMessage(mine.room, mine.bot, 'is anybody there')
	t.equal(await status(), 'connected')
	await nextRound()

	isOver = true
	await talk
	t.comment(`the other channel answered ${rounds} messages`)
	const connected = stream.events.filter(ofChannel('channel.connected', theirs.channel_id))
	t.equal(connected.length, 1, 'the other channel never had to connect again')
	const answers = server.shown(theirs.room, theirs.bot).filter(({ text }) => /round \d+ goes/.test(text))
	t.equal(answers.length, rounds, 'it answered each message once')
	const own = server.shown(mine.room, mine.bot).filter(({ text }) => /first|second|third|fourth|anybody/.test(text))
	t.equal(own.length, 5)
})

void t.test('messages sent while the gateway is stopped are answered after its start, each once', async (t) => {
	const home = makeHome({ config: 'plugins: {matrix-channel: true}\n' }, t)
	install(home)
	const before = await startGateway({ home })
	const stream = await openStream(before.url)
	await before.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const { bot, room } = await connectBot(before, stream, 'matrix', 'keeper')
	server.say(room, alice, 'message 0 here')
	await botMessage(room, bot, 'message 0 here')
	stream.close()
	await before.stop()

	const texts = Array.from({ length: 20 }, (_, n) => `message ${n + 1} here`)
	for (const text of texts) server.say(room, alice, text)
	const after = await startGateway({ home })
	t.teardown(() => after.stop())
	for (const text of texts) await botMessage(room, bot, text)
	const answers = server.shown(room, bot).flatMap(({ text }) => /message \d+ here/.exec(text)?.[0] ?? [])
	t.strictSame(answers, ['message 0 here', ...texts], 'in order, and none twice')
})

void t.test('the channel of docs/writing-a-channel.md leads to a first answer', async (t) => {
	const page = textOf('docs/writing-a-channel.md')
	const [program = ''] = blocksOf(page, 'js')
	write(gateway.home, 'plugins/line-chat/index.js', program)
	await switchOn('line-chat', 'plugins: {matrix-channel: true, line-chat: true}\n')
	// test/docs/commands.test.ts runs the commands of the page.
	const secret = { name: 'LINE_PASSWORD', value: 'open sesame', policy_label: 'channel' }
	t.equal((await gateway.request('POST', '/v1/vault/secrets', { body: secret })).status, 201)
	const channel = { type: 'line', bot_token_ref: 'LINE_PASSWORD', config: { agent_id: 'ada', port: 0 } }
	const { id } = (await gateway.request('POST', '/v1/channels', { body: channel })).body
	await stream.waitFor(ofChannel('channel.connected', id))

	/** Connects, sends the password and waits for the greeting. */
	const logIn = async (greeting: string) => {
		const { bot } = (await gateway.request('GET', `/v1/channels/${id}`)).body
		const socket = connect(Number(bot.split(':')[1]), '127.0.0.1').setEncoding('utf8')
		t.teardown(() => socket.destroy())
		let seen = ''
		socket.on('data', (text: string) => (seen += text))
		const shows = async (pattern: RegExp): Promise<string> => {
			while (!pattern.test(seen)) await once(socket, 'data')
			return pattern.exec(seen)?.[0] ?? ''
		}
		socket.write('open sesame\n')
		t.equal(await shows(/^.+$/m), greeting)
		return { say: (text: string) => socket.write(`${text}\n`), shows, reset: () => socket.resetAndDestroy() }
	}
	const { say, shows, reset } = await logIn('hello')
	say('/start')
	const pairing_code = await shows(code)
	t.equal((await gateway.request('POST', '/v1/channels/pair', { body: { pairing_code } })).status, 201)
	say('is this thing on?')
	t.ok(await shows(/is this thing on\?/))

	// A reset connection ends neither the channel nor the gateway, and the next one works.
	reset()
	const { say: sayAgain, shows: showsAgain } = await logIn('hello')
	sayAgain('and is it still?')
	t.ok(await showsAgain(/and is it still\?/))
	t.equal(stream.events.filter(ofChannel('channel.connected', id)).length, 1, 'the channel did not reconnect')
	t.match((await gateway.request('GET', `/v1/channels/${id}`)).body, { connection: 'connected', last_error: null })

	// Its code is edited while it is used.
	write(gateway.home, 'plugins/line-chat/index.js', program.replace("write('hello\\n')", "write('hello again\\n')"))
	await stream.waitFor(ofChannel('channel.connected', id), 2)
	await logIn('hello again')
})
