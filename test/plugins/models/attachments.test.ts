/** How each dialect sends attachments of prompts and tool results, and what replaces those that a model does not support. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { dataUrl, ogg, pdf, png, wav } from '../../support/files.ts'
import { startRecorder } from '../../support/recorder.ts'
import { follow } from '../../support/runs.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'
import type { ScriptedReply } from '../../support/scripted-model.ts'

const camera = `export default {
	name: 'camera',
	start(ctx) {
		ctx.primitive({
			name: 'camera.shoot',
			description: 'Takes a picture.',
			run: (_, call) => call.attach('Smile.', [{ bytes: Buffer.from('${png('shot').toString('base64')}', 'base64'), name: 'shot.png' }]),
		})
	},
}`

const models: Record<string, { model: string; path: string }> = {
	openai: { model: 'gpt-4o-mini', path: '/v1' },
	'openai-responses': { model: 'gpt-5-mini', path: '/v1' },
	anthropic: { model: 'claude-sonnet-4-5', path: '/v1' },
	google: { model: 'gemini-2.5-pro', path: '/v1beta' },
}

const recorder = await startRecorder(t)
recorder.mock.on(
	{ predicate: ({ messages }) => messages.every(({ role }) => role !== 'tool') },
	{ toolCalls: [{ name: 'camera_shoot', arguments: '{}' }] },
)
recorder.mock.on({ predicate: () => true }, { content: 'Seen.' })
const scripts = await startScriptedModels()
t.teardown(() => scripts.stop())

const providers = Object.entries(models).map(
	([kind, { model, path }]) =>
		`  ${kind}: {kind: ${kind}, base_url: "${recorder.url(kind)}${path}", api_key: k-0123456789, model: ${model}}\n`,
)
const gateway = await startGateway({
	config: `default_provider: openai\nproviders:\n${providers.join('')}plugins: {camera: true}\n`,
	files: { 'plugins/camera/index.js': camera },
})
t.teardown(() => gateway.stop())

const image = png('prompt').toString('base64')
const shot = png('shot').toString('base64')
const document = pdf().toString('base64')
const attachments = [
	{ data: image, name: 'photo.png' },
	{ data: document, name: 'terms.pdf' },
	// as Windows writes text
	{ data: Buffer.from('\ufeffa,b\n1,2\n', 'utf16le').toString('base64'), name: 'table.csv' },
	{ data: Buffer.from([0, 1, 2]).toString('base64'), name: 'core.bin' },
]
const table = '[file "table.csv", text/csv, 18 bytes; its text:]\na,b\n1,2\n\n[end of the file]'
const binary = '[file "core.bin", application/octet-stream, 3 bytes]'

/** Checks of the second request, which has the attachments of the prompt and of the tool result. */
const expected: Record<string, (body: Answer) => void> = {
	openai(body) {
		const at = body.messages.findIndex(({ content }: Answer) => Array.isArray(content))
		t.strictSame(body.messages[at].content, [
			{ type: 'text', text: 'Look.' },
			{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } },
			{ type: 'file', file: { filename: 'terms.pdf', file_data: `data:application/pdf;base64,${document}` } },
			{ type: 'text', text: table },
			{ type: 'text', text: binary },
		])
		t.match(body.messages.slice(at + 1), [
			{ role: 'assistant' },
			{ role: 'tool', content: 'Smile.' },
			{
				role: 'user',
				content: [
					{ type: 'text', text: /result of camera_shoot/ },
					{ type: 'image_url', image_url: { url: `data:image/png;base64,${shot}` } },
				],
			},
		])
	},
	'openai-responses'(body) {
		const prompt = body.input.find(({ content }: Answer) => Array.isArray(content))
		t.strictSame(prompt.content, [
			{ type: 'input_text', text: 'Look.' },
			{ type: 'input_image', image_url: `data:image/png;base64,${image}`, detail: 'auto' },
			{ type: 'input_file', filename: 'terms.pdf', file_data: `data:application/pdf;base64,${document}` },
			{ type: 'input_text', text: table },
			{ type: 'input_text', text: binary },
		])
		t.match(body.input.at(-1), {
			type: 'function_call_output',
			output: [
				{ type: 'input_text', text: 'Smile.' },
				{ type: 'input_image', image_url: `data:image/png;base64,${shot}` },
			],
		})
	},
	anthropic(body) {
		const source = { type: 'base64', media_type: 'image/png', data: image }
		t.match(body.messages[0].content.slice(-5), [
			{ type: 'text', text: 'Look.' },
			{ type: 'image', source },
			{ type: 'document', source: { media_type: 'application/pdf', data: document }, title: 'terms.pdf' },
			{ type: 'text', text: table },
			{ type: 'text', text: binary },
		])
		t.match(body.messages.at(-1).content, [
			{
				type: 'tool_result',
				content: [
					{ type: 'text', text: 'Smile.' },
					{ type: 'image', source: { data: shot } },
				],
			},
		])
	},
	google(body) {
		t.match(body.contents[0].parts.slice(-5), [
			{ text: 'Look.' },
			{ inlineData: { mimeType: 'image/png', data: image } },
			{ inlineData: { mimeType: 'application/pdf', data: document } },
			{ text: table },
			{ text: binary },
		])
		t.match(body.contents.at(-1).parts, [
			{ functionResponse: { name: 'camera_shoot', response: { result: 'Smile.' } } },
			{ inlineData: { mimeType: 'image/png', data: shot } },
		])
	},
}

for (const [kind, check] of Object.entries(expected))
	void t.test(`${kind} gets the attachments of the prompt and of a tool result`, async (t) => {
		const agent = await follow(t, gateway, kind, { config: { provider: kind } })
		const { body } = await agent.call('runs', { prompt: 'Look.', attachments })
		t.equal((await agent.ended(body.run_id)).event_type, 'run.completed')
		check(recorder.bodies(kind)[1])
		t.equal(recorder.bodies(kind).length, 2)
		const result = agent.eventsOf(body.run_id).find(({ event_type }) => event_type === 'primitive.result')
		t.match(result?.payload, { result: 'Smile.', attachments: [{ type: 'image', name: 'shot.png' }] })
		t.notMatch(JSON.stringify(agent.eventsOf(body.run_id)), shot.slice(0, 60), 'no event has the bytes')

		// The next turn repeats the images of the earlier turns.
		const next = await agent.call('runs', { prompt: 'And now?' })
		await agent.ended(next.body.run_id)
		t.match(JSON.stringify(recorder.bodies(kind)[2]), image)
		t.match(JSON.stringify(recorder.bodies(kind)[2]), shot)
	})

void t.test('recordings are sent to models that support their format; other models get a description', async (t) => {
	const recordings = [{ data: wav().toString('base64') }, { data: ogg().toString('base64'), name: 'voice.oga' }]
	const expectedIn: Record<string, RegExp[]> = {
		openai: [
			/"input_audio":\{"data":"UklGR[^"]+","format":"wav"\}/,
			/\[recording \\"voice.oga\\", audio\/ogg, \d+ bytes: /,
		],
		'openai-responses': [/\[recording, audio\/wav, 8 KB: this model does not support it\]/],
		anthropic: [/\[recording, audio\/wav, 8 KB: this model does not support it\]/],
		google: [/"inlineData":\{"mimeType":"audio\/wav"/, /"inlineData":\{"mimeType":"audio\/ogg"/],
	}
	for (const [kind, patterns] of Object.entries(expectedIn)) {
		const agent = await follow(t, gateway, `${kind}-audio`, { config: { provider: kind } })
		const { body } = await agent.call('runs', { attachments: recordings })
		t.equal((await agent.ended(body.run_id)).event_type, 'run.completed')
		for (const pattern of patterns) t.match(JSON.stringify(recorder.bodies(kind).at(-1)), pattern, kind)
	}
})

const done = { sse: [{ choices: [{ index: 0, delta: { content: 'Seen.' }, finish_reason: 'stop' }] }] }
const hasImage = (body: Answer): boolean => JSON.stringify(body.messages).includes('image_url')

/** An agent whose model refuses a request with the error that `refuses` returns for it. */
async function refusing(
	t: Test,
	name: string,
	refuses: (body: Answer) => object | undefined,
	refusal = (error: object): ScriptedReply => ({ status: 400, json: { error } }),
) {
	const { url, requests } = scripts.add(({ body }) => {
		const error = refuses(body)
		return error ? refusal(error) : done
	})
	const other = await startGateway({
		config: `providers:\n  ${name}: {kind: openai, base_url: "${url}", model: m-${name}, api_key: k-0123456789}\n`,
	})
	t.teardown(() => other.stop())
	const agent = await follow(t, other, 'ada')
	const sendIn = async (conversation: string, marks: string[]) => {
		const { body } = await agent.call('runs', {
			prompt: 'Look.',
			conversation,
			attachments: marks.map((mark) => ({ url: dataUrl('image/png', png(mark)), name: `${mark}.png` })),
		})
		return agent.ended(body.run_id)
	}
	return { requests, send: (...marks: string[]) => sendIn('one', marks), sendElsewhere: () => sendIn('other', []) }
}

const refusals = {
	openai: 'Invalid content type. image_url is only supported by certain models.',
	deepseek:
		'Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`',
	'llama.cpp': 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
	vllm: 'At most 0 image(s) may be provided in one request.',
	text: 'messages.1.content: Input should be a valid string',
}

for (const [server, message] of Object.entries(refusals))
	void t.test(`a model that refuses images gets a description instead, in later runs at once: ${server}`, async (t) => {
		const name = server.replace('.', '-')
		const { requests, send } = await refusing(t, name, (body) => (hasImage(body) ? { message } : undefined))
		t.equal((await send('cat')).event_type, 'run.completed')
		t.equal((await send('dog')).event_type, 'run.completed')
		t.strictSame(
			requests.map(({ body }) => hasImage(body)),
			[true, false, false],
		)
		t.match(
			JSON.stringify(requests[1]?.body),
			/\[image \\"cat.png\\", image\/png, \d+ bytes: this model does not support it\]/,
		)
	})

/** The images in each request. */
const shownIn = (requests: { body: unknown }[], marks: string[]): string[] =>
	requests.map(({ body }) =>
		marks.filter((mark) => JSON.stringify(body).includes(png(mark).toString('base64'))).join(' '),
	)

void t.test('an image that a server cannot read does not prevent others from being sent', async (t) => {
	const { requests, send } = await refusing(t, 'picky', (body) =>
		shownIn([{ body }], ['bad']).includes('bad')
			? { message: 'Could not process image', param: 'messages' }
			: undefined,
	)
	for (const marks of [['bad'], ['one', 'two']]) t.equal((await send(...marks)).event_type, 'run.completed')
	t.equal((await send('bad', 'three')).event_type, 'run.completed')
	t.strictSame(shownIn(requests, ['bad', 'one', 'two', 'three']), ['bad', '', 'one two', 'one two three'])
	t.match(
		JSON.stringify(requests[1]?.body),
		/\[image \\"bad.png\\", image\/png, \d+ bytes: this model cannot read it\]/,
	)
})

void t.test('an unreadable image among several is found by omitting one at a time', async (t) => {
	const { requests, send } = await refusing(t, 'found', (body) =>
		shownIn([{ body }], ['bad']).includes('bad') ? { message: 'invalid image' } : undefined,
	)
	t.equal((await send('one', 'bad', 'two')).event_type, 'run.completed')
	t.strictSame(shownIn(requests, ['one', 'bad', 'two']), ['one bad two', 'one bad', 'one two'])
})

void t.test('if more than one image is unreadable, all are described', async (t) => {
	const { requests, send } = await refusing(t, 'both', (body) =>
		hasImage(body) ? { message: 'invalid image' } : undefined,
	)
	t.equal((await send('one', 'two')).event_type, 'run.completed')
	t.strictSame(shownIn(requests, ['one', 'two']), ['one two', 'one', 'two', ''])
})

void t.test('of too many images the newest are sent, and none counts as unreadable', async (t) => {
	const { requests, send } = await refusing(t, 'few', (body) =>
		shownIn([{ body }], ['one']).includes('one') && shownIn([{ body }], ['three']).includes('three')
			? { message: 'At most 2 image(s) may be provided in one request.' }
			: undefined,
	)
	t.equal((await send('one', 'two', 'three')).event_type, 'run.completed')
	t.strictSame(shownIn(requests, ['one', 'two', 'three']), ['one two three', 'two three'])
})

void t.test('a refusal without a reason does not end a conversation with an image', async (t) => {
	const { requests, send } = await refusing(t, 'vague', (body) =>
		hasImage(body) ? { message: 'Bad Request' } : undefined,
	)
	t.equal((await send('cat')).event_type, 'run.completed')
	t.equal((await send()).event_type, 'run.completed', 'the next message without an image')
	t.strictSame(
		requests.map(({ body }) => hasImage(body)),
		[true, false, true, false],
		'each run tries again, since the image may not be the reason',
	)
	t.match(
		JSON.stringify(requests[1]?.body),
		/\[image \\"cat.png\\", image\/png, \d+ bytes: this model cannot read it\]/,
	)
})

void t.test('what was omitted in vain is sent again once the attachments turn out to be the reason', async (t) => {
	const { requests, send, sendElsewhere } = await refusing(t, 'misleading', (body) =>
		hasImage(body) ? { message: 'the template for tools cannot render this message' } : undefined,
	)
	t.equal((await send('cat')).event_type, 'run.completed')
	t.strictSame(
		requests.map(({ body }) => 'tools' in body),
		[true, false, false],
	)
	t.equal((await sendElsewhere()).event_type, 'run.completed')
	t.ok('tools' in (requests.at(-1)?.body ?? {}), 'the model still has its tools')
})

void t.test('of attachments too large for a proxy, the newest is sent, then none; later runs retry', async (t) => {
	const { requests, send } = await refusing(
		t,
		'proxied',
		(body) => (/large|one two/.test(shownIn([{ body }], ['one', 'two', 'large']).join('')) ? {} : undefined),
		() => ({ status: 413, text: '<html>413 Request Entity Too Large</html>', type: 'text/html' }),
	)
	for (const marks of [['one', 'two'], ['large'], ['one']]) t.equal((await send(...marks)).event_type, 'run.completed')
	t.strictSame(shownIn(requests, ['one', 'two', 'large']), [
		'one two',
		'two',
		'one two large',
		'large',
		'',
		'one two large',
		'one',
	])
})
