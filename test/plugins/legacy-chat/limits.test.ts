/** Limits of the chat API, and its connections during a reload and a stop. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import type { RunLog } from '../../../plugins/runs/run-log.ts'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import type { ManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { chatOf, fails, frameOf, rawUpgrade, refusal } from './chat.ts'
import type { Chat } from './chat.ts'

/** A tool that makes its agent stream more than the kernel buffers for one connection. The test sends the pieces. */
const flood = `
export default {
	name: 'flood',
	start(ctx) {
		ctx.primitive({
			name: 'flood.talk',
			description: 'Talks.',
			run: ({ count }, call) => globalThis.flood(call.run_id, count),
		})
	},
}
`

const PIECE = 64 * 1024

/** The log of each run, as its executor opened it. */
const logs = new Map<string, RunLog>()

/** Streams pieces, slowly enough for a client that reads. */
async function streamPieces(run_id: string, count: number): Promise<void> {
	const content = 'x'.repeat(PIECE)
	for (let n = 0; n < count; n++) {
		logs.get(run_id)?.live({ event_type: 'model.stream', payload: { content } })
		await new Promise((resolve) => setTimeout(resolve, 1))
	}
}
Object.assign(globalThis, { flood: streamPieces })

interface Setup {
	gateway: TestGateway
	chat: Chat
	model: ManualModel
	/** Writes gateway.yaml, and waits until it is loaded. */
	change(settings: string): Promise<void>
}

async function start(t: Test, settings: string, grace_s = 0): Promise<Setup> {
	const model = await startManualModel()
	const configOf = (pluginSettings: string): string =>
		`server: {shutdown_grace_s: ${grace_s}}
default_provider: held
${providersAt({ held: model.url })}  offline: {kind: offline}
plugins:
  flood: true
  legacy-chat: ${pluginSettings}
`
	const gateway = await startGateway({
		config: configOf(settings),
		files: { 'plugins/flood/index.js': flood },
	})
	t.teardown(async () => {
		await gateway.stop()
		await model.stop()
	})
	const { events } = gateway.running.gateway
	const openWriter = events.openWriter.bind(events)
	events.openWriter = async (run_id, open) => {
		const writer = await openWriter(run_id, open)
		logs.set(run_id, writer as unknown as RunLog)
		return writer
	}
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	await gateway.request('POST', '/v1/agents', { body: { name: 'talker', config: { provider: 'offline' } } })
	return {
		gateway,
		chat: chatOf(gateway),
		model,
		async change(pluginSettings) {
			writeFileSync(join(gateway.home, 'config', 'gateway.yaml'), configOf(pluginSettings))
			await gateway.running.gateway.reload()
		},
	}
}

const floodPrompt = (count: number): string => `/tool flood.talk {"count":${count}}`

void t.test('the numbers of waiting requests, streams included, and of sockets are limited', async (t) => {
	const { chat, gateway, model } = await start(t, '{max_waiting: 2, max_sockets: 1}')
	const waiting = chat.say('ada', { message: 'one' })
	const call = await model.called('one')
	const stream = await chat.stream('ada', { message: 'two' })
	for (const full of [
		await chat.say('ada', { message: 'three' }),
		await chat.request('GET', '/api/agents/ada/chat/stream?message=three'),
	]) {
		fails(t, full, 503, /2 requests wait for their replies/)
		t.match(full.headers.get('retry-after'), /^\d+$/)
	}
	stream.close()
	call.answer('1')
	t.equal((await waiting).status, 200)
	;(await model.called('two')).answer('2')
	const again = chat.say('ada', { message: 'three' })
	;(await model.called('three')).answer('3')
	t.equal((await again).status, 200)
	t.equal((await gateway.request('GET', '/v1/agents/ada/runs')).body.length, 3, 'refused requests started no run')

	const { socket, closed } = await chat.open('ada')
	const refused = await refusal(chat.open('ada'))
	fails(t, refused, 503, /1 WebSockets are open/)
	t.match(refused.headers['retry-after'], /^\d+$/)
	socket.close()
	await closed
	const second = await chat.open('ada')
	second.socket.close()
})

void t.test('a quiet stream receives comments, and ends when its token is revoked', async (t) => {
	const { chat, gateway, model } = await start(t, '{heartbeat_s: 1}')
	const { id, token } = await addToken(gateway, ['runs:write'])
	const stream = await chat.stream('ada', { message: 'slowly' }, { token })
	const waiting = chat.say('ada', { message: 'behind it' }, { token })
	const call = await model.called('slowly')
	await stream.until(() => stream.comments.includes('still here'), 'a comment')
	await gateway.request('DELETE', `/v1/auth/tokens/${id}`)
	t.match(await stream.last(), { event: 'error', data: { error: 'the token is no longer valid' } })
	fails(t, await waiting, 401, /no longer valid/)
	call.answer('done')
	;(await model.called('behind it')).answer('done too')
})

void t.test('a client that reads nothing is disconnected, one that reads receives everything', async (t) => {
	const { chat, gateway } = await start(t, '{stall_timeout_s: 3}')
	const ended = (): Promise<unknown> =>
		new Promise((resolve) => gateway.running.gateway.events.subscribe({ types: ['run.completed'] }, resolve))
	let over = ended()
	const count = 150
	const stalled = connect(Number(new URL(chat.url).port), '127.0.0.1')
	stalled.pause()
	stalled.on('error', () => {})
	stalled.write(
		`GET /api/agents/talker/chat/stream?message=${encodeURIComponent(floodPrompt(count))} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
	)
	await over
	t.ok((await bytesFrom(stalled)) < count * PIECE)

	const stream = await chat.stream('talker', { message: floodPrompt(40) })
	await stream.closed
	const pieces = stream.events.filter(({ data }) => String(data.content).length === PIECE)
	t.equal(pieces.length, 40)

	over = ended()
	const { socket } = await rawUpgrade(chat.url, '/api/agents/talker/chat/ws')
	socket.pause()
	socket.write(frameOf(1, JSON.stringify({ message: floodPrompt(count) })))
	await over
	t.ok((await bytesFrom(socket)) < count * PIECE)
})

void t.test('a socket whose client does not answer pings is closed, one that answers stays open', async (t) => {
	const { chat } = await start(t, '{ping_s: 1}')
	const good = await chat.open('talker')
	const { socket } = await rawUpgrade(chat.url, '/api/agents/talker/chat/ws')
	socket.resume()
	await once(socket, 'close')
	good.send({ message: 'hello' })
	t.equal((await good.next('done', 'error')).type, 'done')
	good.socket.close()
})

void t.test('a reload closes sockets, and waiting requests finish', async (t) => {
	const { chat, model, change } = await start(t, '{ping_s: 30}')
	const { closed } = await chat.open('ada')
	const waiting = chat.say('ada', { message: 'before' })
	const call = await model.called('before')
	const stream = await chat.stream('ada', { message: 'also before' })
	await change('{ping_s: 20}')
	t.match(await closed, { code: 1012, reason: /restarted/ })
	call.answer('kept.')
	t.equal((await waiting).body.response, 'Well, kept.')
	;(await model.called('also before')).answer('kept too.')
	t.equal((await stream.last()).event, 'done')
	t.equal(stream.text(), 'Well, kept too.')
	const next = await chat.open('ada')
	await change('false')
	t.match(await next.closed, { code: 1012 })
	await t.rejects(chat.request('GET', '/'), 'nothing listens there any more')
})

void t.test('a stop of the gateway answers every waiting request', async (t) => {
	const { chat, gateway, model } = await start(t, 'true', 1)
	const socket = await chat.open('talker')
	const waiting = ['hold', 'behind it'].map((message) => chat.say('ada', { message }))
	await model.called('hold')
	const stream = await chat.stream('ada', { message: 'hold too' })
	// Does not take part in the closing handshake.
	const stalled = await rawUpgrade(chat.url, '/api/agents/talker/chat/ws')
	stalled.socket.pause()
	const stopped = gateway.stop()
	for (const reply of await Promise.all(waiting)) fails(t, reply, 503, /being restarted/)
	t.match(await stream.last(), { event: 'error', data: { error: /being restarted/ } })
	t.match(await socket.closed, { code: 1001 })
	await stopped
	stalled.socket.destroy()
})

void t.test('settings outside their range are refused, and the error names them', async (t) => {
	for (const setting of [
		'max_waiting: 0',
		'max_sockets: 0',
		'heartbeat_s: 61',
		'ping_s: never',
		'stall_timeout_s: 0',
		'x: 1',
	]) {
		const name = setting.split(':')[0] ?? ''
		const started = startGateway({ config: `plugins: {legacy-chat: {${setting}}}` })
		await t.rejects(started, { code: 'config_invalid', message: new RegExp(name) }, setting)
	}
})

/** Reads a socket to its end, and returns the number of bytes. */
async function bytesFrom(socket: Socket): Promise<number> {
	let count = 0
	socket.on('data', (data) => (count += data.length))
	socket.resume()
	if (!socket.closed) await once(socket, 'close')
	return count
}
