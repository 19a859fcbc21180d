/** kill -9 while the files of an answer are being sent. Afterwards the text and each file were sent once, in order. */
import t from 'tap'
import type { Test } from 'tap'
import { startDiscord } from '../support/discord.ts'
import { png } from '../support/files.ts'
import { makeHome, send, startHere } from '../support/gateway.ts'
import type { KillableGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { startTelegram } from '../support/telegram.ts'
import { eventually } from '../support/wait.ts'

const PHOTO = 'photo.png'
const TEXT = 'a,b\n1,2\n'

interface Platform {
	api_root: string
	token: string
	chat: { id: string; sendPhoto(text: string): void; received(): Received[] }
	/** Breaks the connections of the next uploads, also after their files were accepted. */
	failUploads(): void
	stop(): Promise<void>
}

/** A message of the bot: a text, or the bytes of a file. */
type Received = { text: string } | { file: Buffer }

async function telegram(): Promise<Platform> {
	const server = await startTelegram()
	server.files.set(PHOTO, png())
	const chat = server.person(1, 'Ann')
	return {
		api_root: server.url,
		token: server.token,
		chat: {
			id: '1',
			sendPhoto: (caption) => void server.say(chat, '', { text: undefined, caption, photo: [{ file_id: PHOTO }] }),
			received: () => server.messages(chat).map(({ text, file }) => (file ? { file: file.bytes } : { text })),
		},
		failUploads() {
			for (const method of ['sendPhoto', 'sendDocument']) server.fault(method, 'cut before', 'cut after')
		},
		stop: server.stop,
	}
}

async function discord(): Promise<Platform> {
	const server = await startDiscord()
	server.files.set(PHOTO, png())
	const chat = server.addChannel()
	const file = { id: '1', filename: PHOTO, content_type: 'image/png', url: `${server.url}/files/${PHOTO}` }
	return {
		api_root: server.url,
		token: server.token,
		chat: {
			id: chat.id,
			sendPhoto: (text) => void server.say(chat, text, { mention: true, more: { attachments: [file] } }),
			received: () =>
				server.written(chat).map(({ content, upload }) => (upload ? { file: upload.bytes } : { text: content })),
		},
		failUploads: () => server.fail({ method: 'POST', path: /messages$/, isUpload: true, how: 'after', times: 3 }),
		stop: () => server.stop(),
	}
}

async function testPlatform(t: Test, type: string, platform: Platform): Promise<void> {
	t.teardown(() => platform.stop())
	const home = makeHome({ config: 'server: { shutdown_grace_s: 0 }\nchannels: { retry_max_s: 1 }\n' }, t)
	let gateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = async (method: string, path: string, body?: unknown) => {
		const reply = await send(`${gateway.url}/v1/${path}`, method, { body })
		if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
		return reply.body
	}
	await request('POST', 'vault/secrets', { name: 'BOT', value: platform.token })
	const config = { api_root: platform.api_root }
	const { id: channel_id } = await request('POST', 'channels', { type, bot_token_ref: 'BOT', config })
	await request('POST', 'agents', { name: 'ada' })
	const { chat } = platform
	await request('POST', 'channels/pair', { agent_id: 'ada', channel_id, external_chat_id: chat.id })
	// Discord does not deliver messages from before the first connection.
	await eventually(
		() => request('GET', `channels/${channel_id}`),
		({ connection }) => connection === 'connected',
	)
	// The confirmation of the binding.
	await eventually(chat.received, ({ length }) => length === 1)
	const files = (): Buffer[] => chat.received().flatMap((message) => ('file' in message ? [message.file] : []))

	platform.failUploads()
	const sendFile = (args: object): string => `/tool conversation.send_file ${JSON.stringify(args)}`
	const photo = type === 'chat_a' ? 'image.png' : PHOTO
	chat.sendPhoto(['Please.', sendFile({ file: photo }), sendFile({ text: TEXT, name: 'numbers.csv' })].join('\n'))
	for (const count of [1, 2]) {
		await eventually(files, ({ length }) => length >= count)
		await gateway.kill()
		gateway = await spawnGateway(home)
	}
	const sent = await eventually(
		() => request('GET', 'audit?agent_id=ada&event_type=channel.message_sent'),
		({ events }) => events.length > 0,
	)
	t.equal(sent.events.length, 1, 'the answer has one event')
	t.equal(sent.events[0].payload.message_ids.length, 3)
	const [, text, ...rest] = chat.received()
	t.match(text, { text: /sent_with_answer/ })
	t.strictSame(rest, [{ file: png() }, { file: Buffer.from(TEXT) }], 'each file was sent once, in order')
	const [run] = await request('GET', 'agents/ada/runs')
	t.match(run.files, [{ type: 'image' }, { name: 'numbers.csv' }])
	t.equal(gateway.errors(), '', 'the last gateway printed no errors')
}

t.jobs = 3
void t.test('chat_a', { timeout: 300_000 }, async (t) => testPlatform(t, 'chat_a', await telegram()))
void t.test('chat_b', { timeout: 300_000 }, async (t) => testPlatform(t, 'chat_b', await discord()))

void t.test(
	'a file is added to an answer once, even if the gateway is killed afterwards',
	{ timeout: 300_000 },
	async (t) => {
		const held = await startManualModel()
		t.teardown(() => held.stop())
		const config = `server: { shutdown_grace_s: 0 }
default_provider: held
${providersAt({ held: held.url })}`
		const home = makeHome({ config }, t)
		let gateway: KillableGateway = await spawnGateway(home)
		t.teardown(() => gateway.kill())
		await send(`${gateway.url}/v1/agents`, 'POST', { body: { name: 'ada' } })
		const { body: started } = await send(`${gateway.url}/v1/agents/ada/runs`, 'POST', { body: { prompt: 'send it' } })
		/** Answers all open model calls, with a tool call as long as its result is missing, and returns the run. */
		const answerCalls = async () => {
			for (const call of held.calls.filter(({ open }) => open)) {
				const hasResult = (call.body.messages as { role: string }[]).some(({ role }) => role === 'tool')
				if (hasResult) call.answer('here it is.')
				else call.callTool('conversation_send_file', JSON.stringify({ text: TEXT, name: 'numbers.csv' }))
			}
			return (await send(`${gateway.url}/v1/runs/${started.run_id}`, 'GET')).body
		}
		await eventually(answerCalls, ({ files }) => files !== undefined)
		await gateway.kill()
		gateway = await startHere(home)
		const run = await eventually(answerCalls, ({ status }) => status === 'completed')
		t.match(run, { answer: /here it is\.$/, files: { length: 1, 0: { name: 'numbers.csv', size: TEXT.length } } })
		const bytes = await fetch(`${gateway.url}/v1/agents/ada/blobs/${run.files[0].blob}`)
		t.equal(await bytes.text(), TEXT)
	},
)
