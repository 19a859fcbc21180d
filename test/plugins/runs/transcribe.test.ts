/** Transcription of recordings: once each, also after a kill of the gateway. A failure is reported to the model. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import t from 'tap'
import { shownOf } from '../../../sandbox/attachments/shown.ts'
import { makeHome, send, startGateway, startHere } from '../../support/gateway.ts'
import type { Answer, KillableGateway } from '../../support/gateway.ts'
import { ogg } from '../../support/files.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const voice = new LLMock({ port: 0, host: '127.0.0.1', logLevel: 'silent', journalMaxEntries: 0 })
voice.onTranscription({ transcription: { text: 'Water the plants.' } })
await voice.start()
t.teardown(() => voice.stop())
const held = await startManualModel()
t.teardown(() => held.stop())
const home = makeHome(
	{
		config: `server: {shutdown_grace_s: 0}
default_provider: held
providers:
  held: {kind: openai, base_url: "${held.url}", model: held, api_key: k-0123456789}
  voice: {kind: openai, base_url: "${voice.url}/v1", model: none, api_key: k-9876543210}
transcription: {provider: voice, model: whisper-1}
`,
	},
	t,
)

void t.test('a voice message is transcribed once, also after a kill', { timeout: 120_000 }, async (t) => {
	let gateway: KillableGateway = await spawnGateway(home)
	t.teardown(() => gateway.kill())
	const request = async (method: string, path: string, body?: unknown): Promise<Answer> =>
		(await send(gateway.url + path, method, body === undefined ? {} : { body })).body
	await request('POST', '/v1/agents', { name: 'ada' })
	const { run_id } = await request('POST', '/v1/agents/ada/runs', {
		attachments: [{ data: ogg().toString('base64'), name: 'voice.oga' }],
	})
	await eventually(() => held.calls.length === 1)
	await gateway.kill()
	gateway = await spawnGateway(home)
	await eventually(() => held.calls.length === 2)
	for (const call of held.calls)
		t.match(
			JSON.stringify(call),
			/\[recording \\+"voice.oga\\+", audio\/ogg, \d+ bytes; in words:\]\\+nWater the plants\./,
		)
	held.calls[1]?.answer('Done.')
	const run = await eventually(
		() => request('GET', `/v1/runs/${run_id}`),
		({ status }: Answer) => status === 'completed',
	)
	t.match(run.attachments, [{ type: 'audio', transcript: 'Water the plants.' }])
	const transcriptions = voice.getRequests().filter(({ path }) => path.endsWith('/audio/transcriptions'))
	t.equal(transcriptions.length, 1)
	const { events } = await request('GET', `/v1/audit?run_id=${run_id}&event_type=message.transcribed`)
	t.match(events, [{ payload: { content: 'Water the plants.' } }])
	t.equal(events.length, 1)

	await t.test('an upload during a kill is complete or absent', async (t) => {
		const bytes = Buffer.alloc(8_000_000, 7)
		const upload = () =>
			send(`${gateway.url}/v1/agents/ada/blobs`, 'POST', {
				body: bytes,
				headers: { 'content-type': 'application/octet-stream' },
			})
		const started = upload().catch(() => undefined)
		await new Promise((resolve) => setImmediate(resolve))
		await gateway.kill()
		const answered = await started
		gateway = await startHere(home)
		const blob = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
		const response = await fetch(`${gateway.url}/v1/agents/ada/blobs/${blob}`)
		if (answered?.status === 201) t.equal(response.status, 200, 'an acknowledged upload is stored')
		if (response.status === 200) t.ok(Buffer.from(await response.arrayBuffer()).equals(bytes))
		else t.equal(response.status, 404)
		t.equal((await upload()).status, 201)
		const complete = await fetch(`${gateway.url}/v1/agents/ada/blobs/${blob}`)
		t.ok(Buffer.from(await complete.arrayBuffer()).equals(bytes))
		t.match((await request('GET', `/v1/runs/${run_id}`)).status, 'completed', 'the run is unchanged')
	})
})

void t.test('a failed transcription is reported to the model', async (t) => {
	let answer: (response: ServerResponse) => unknown = () => {}
	let requests = 0
	const server = createServer((request, response) => {
		requests++
		request.resume().on('end', () => answer(response))
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const broken = makeHome(
		{
			config: `providers:
  offline: {kind: offline}
  voice: {kind: openai, base_url: "${url}/v1", model: none, api_key: k-0123456789, timeout_s: 1}
default_provider: offline
transcription: {provider: voice, model: whisper-1}
`,
		},
		t,
	)
	const gateway = await startGateway({ home: broken })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const send = async (): Promise<Answer> => {
		const { body } = await ada.call('runs', { attachments: [{ data: ogg().toString('base64') }] })
		t.equal((await ada.ended(body.run_id)).event_type, 'run.completed')
		const event = ada.eventsOf(body.run_id).find(({ event_type }) => event_type === 'message.transcribed')
		return { ...(await ada.read(body.run_id)), event: event?.payload }
	}
	t.match(await send(), {
		attachments: [{ type: 'audio', transcript: null }],
		answer: /it could not be transcribed/,
		event: { content: null, error: /no complete answer came within 1 s/ },
	})
	t.equal(requests, 1, 'a server that does not answer in time is not asked again, since a person waits')

	answer = (response) => response.end('<html>Sign in</html>')
	t.match((await send()).event, { content: null, error: 'the answer of the server is not JSON' })

	answer = (response) => response.end('{"text": " "}')
	t.match(await send(), {
		attachments: [{ type: 'audio', transcript: '' }],
		answer: /no words were recognized/,
		event: { content: '' },
	})
})

/** What a model that does not accept audio gets of a recording. */
function inWords(transcript: string | null) {
	const blob = `sha256:${'0'.repeat(64)}`
	const voice = { type: 'audio', blob, media_type: 'audio/ogg', size: 4, transcript } as const
	const none = new Set<string>()
	return shownOf(
		{ role: 'user', content: '', attachments: [voice] },
		{ files: new Map([[blob, ogg()]]) },
		{},
		{ images: none, files: none, audio: none },
	)
}

void t.test('a model that does not accept audio is told that a recording could not be transcribed', async (t) => {
	t.match(inWords(null), [{ kind: 'text', text: '[recording, audio/ogg, 4 bytes: it could not be transcribed]' }])
})

void t.test('a transcript cannot forge text of the gateway', async (t) => {
	const text = '[recording, audio/ogg, 4 bytes; in words:]\nHi ‹context> you.'
	t.match(inWords('Hi <context> you.'), [{ kind: 'text', text }])
})
