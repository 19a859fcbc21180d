/** Images, files and recordings of OpenAI's clients: stored with the run, and sent to the agent's model. */
import t from 'tap'
import type { Answer } from '../../support/gateway.ts'
import { dataUrl, pdf, png, wav } from '../../support/files.ts'
import { startSurface } from './client.ts'

const surface = await startSurface(t)
surface.model.mock.on({ predicate: () => true }, { content: 'Seen.' })
const openai = surface.client()
const cat = dataUrl('image/png', png('cat'))
const dog = dataUrl('image/png', png('dog'))
const requests = (): Answer[] => surface.model.mock.getRequests().map(({ body }) => body)
const partsOf = (body: Answer): Answer[] => body.messages.findLast(({ role }: Answer) => role === 'user').content
const newestRun = async (agent: string): Promise<Answer> => {
	const [run] = await surface.runs(agent)
	return surface.run(run?.run_id ?? '')
}

void t.test('the parts of a chat completion reach the model', async (t) => {
	await surface.agent('ada')
	const { choices } = await openai.chat.completions.create({
		model: 'svc/ada',
		messages: [
			{
				role: 'user',
				content: [
					{ type: 'text', text: 'Is this' },
					{ type: 'image_url', image_url: { url: cat, detail: 'high' } },
					{ type: 'text', text: 'larger than that?' },
					{ type: 'image_url', image_url: { url: dog } },
					{ type: 'file', file: { filename: 'terms.pdf', file_data: dataUrl('application/pdf', pdf()) } },
					{ type: 'input_audio', input_audio: { data: wav().toString('base64'), format: 'wav' } },
				],
			},
		],
	})
	t.equal(choices[0]?.message.content, 'Seen.')
	t.match(partsOf(requests().at(-1)), [
		{ type: 'text', text: 'Is this\n[attachment 1]\nlarger than that?' },
		{ type: 'image_url', image_url: { url: cat } },
		{ type: 'image_url', image_url: { url: dog } },
		{ type: 'file', file: { filename: 'terms.pdf' } },
		{ type: 'input_audio', input_audio: { format: 'wav' } },
	])
	t.match(await newestRun('ada'), {
		prompt: 'Is this\n[attachment 1]\nlarger than that?',
		attachments: [{ type: 'image' }, { type: 'image' }, { type: 'file', name: 'terms.pdf' }, { type: 'audio' }],
	})
})

void t.test('images of earlier messages are sent; one that cannot be loaded becomes a note', async (t) => {
	await surface.agent('bob')
	const call = { id: 'call_1', type: 'function' as const, function: { name: 'look', arguments: '{}' } }
	await openai.chat.completions.create({
		model: 'svc/bob',
		messages: [
			{ role: 'user', content: [{ type: 'image_url', image_url: { url: cat } }] },
			{ role: 'assistant', content: 'A cat.' },
			{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://127.0.0.1:9/gone.png' } }] },
			{ role: 'assistant', content: null, tool_calls: [call] },
			{ role: 'tool', tool_call_id: 'call_1', content: [{ type: 'text', text: 'ok' }] },
			{ role: 'assistant', content: 'Nothing.' },
			{ role: 'user', content: [{ type: 'image_url', image_url: { url: dog } }] },
		],
	})
	const body = requests().at(-1)
	const text = JSON.stringify(body)
	t.ok(text.includes(cat) && text.includes(dog))
	t.match(text, /\[attachments are omitted: /)
	t.match(await newestRun('bob'), { prompt: '', attachments: [{ type: 'image' }] })
})

void t.test('the parts of a response reach the model, also when it is continued', async (t) => {
	await surface.agent('carl')
	const first = await openai.responses.create({
		model: 'svc/carl',
		input: [
			{
				role: 'user',
				content: [
					{ type: 'input_text', text: 'Look.' },
					{ type: 'input_image', image_url: cat, detail: 'auto' },
					{ type: 'input_file', filename: 'terms.pdf', file_data: dataUrl('application/pdf', pdf()) },
				],
			},
		],
	})
	t.equal(first.output_text, 'Seen.')
	t.match(partsOf(requests().at(-1)), [
		{ text: 'Look.' },
		{ image_url: { url: cat } },
		{ file: { filename: 'terms.pdf' } },
	])
	await openai.responses.create({ model: 'svc/carl', input: 'And now?', previous_response_id: first.id })
	t.ok(JSON.stringify(requests().at(-1)).includes(cat), 'the image is sent again')
})

void t.test('a body with attachments can be larger than others', async (t) => {
	await surface.agent('dora')
	const large = dataUrl('image/png', png('x'.repeat(3_000_000)))
	await openai.chat.completions.create({
		model: 'svc/dora',
		messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: large } }] }],
	})
	// aimock keeps the size of a large body instead of the body.
	t.ok(requests().at(-1).originalByteSize > large.length)
})

void t.test('invalid parts are refused with their position', async (t) => {
	await surface.agent('eve')
	const refused = async (
		part: object,
		message: RegExp,
		param: string | null = 'messages[0].content[0]',
	): Promise<void> => {
		const create = openai.chat.completions.create({
			model: 'svc/eve',
			messages: [{ role: 'user', content: [part as never] }],
		})
		await t.rejects(create, { status: 400, param, message }, JSON.stringify(part).slice(0, 60))
	}
	await refused({ type: 'image_url' }, /lacks image_url.url/)
	await refused({ type: 'file', file: { file_id: 'file-1' } }, /stores no files by id/)
	await refused(
		{ type: 'image_url', image_url: { url: 'data:image/png;base64,???' } },
		/not base64/,
		'messages[0].content',
	)
	await refused({ type: 'image_url', image_url: { url: 'http://127.0.0.1:9/x' } }, /not a public address/, null)
	await refused(
		{ type: 'image_url', image_url: { url: 'http://169.254.169.254/latest' } },
		/not a public address/,
		null,
	)
	const system = { role: 'system' as const, content: [{ type: 'image_url', image_url: { url: cat } }] as never }
	await t.rejects(
		openai.chat.completions.create({ model: 'svc/eve', messages: [system, { role: 'user', content: 'x' }] }),
		{ status: 400, param: 'messages[0].content', message: /text only/ },
	)
	t.equal((await surface.runs('eve')).length, 0)
})
