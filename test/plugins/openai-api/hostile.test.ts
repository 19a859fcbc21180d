/** Malicious requests. */
import t from 'tap'
import { messagesOf } from '../../../plugins/openai-api/items.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'
import { eventually } from '../../support/wait.ts'
import { refusal, startSurface, userMessages } from './client.ts'

const surface = await startSurface(t, '{user_is_conversation: true}')
const { gateway, model } = surface
const openai = surface.client()
await surface.agent('ada')

void t.test('referenced items together are limited like a body', async (t) => {
	model.on('a long story', { text: 'x'.repeat(600_000), chunkSize: 16_384 })
	const { output } = await openai.responses.create({ model: 'ada', input: 'a long story' })
	const reference = { type: 'item_reference' as const, id: output[0]?.id ?? '' }
	const ask = (times: number) => {
		const input = [...Array.from({ length: times }, () => reference), { role: 'user' as const, content: 'shorter' }]
		return openai.responses.create({ model: 'ada', input, store: false })
	}
	model.on('shorter', 'Once.')
	t.equal((await ask(1)).output_text, 'Once.')
	t.match(await refusal(ask(2)), {
		status: 400,
		param: 'input',
		message: /more than 1048576 characters together; reference fewer/,
	})
})

void t.test('reading many calls in a row takes linear time', (t) => {
	const read = (length: number) => {
		const calls = Array.from({ length }, (_, at) => ({
			type: 'function_call',
			call_id: `c${at}`,
			name: 'f',
			arguments: '',
		}))
		return () => messagesOf(calls)
	}
	// For eight times as many, quadratic time would be 64 times as long.
	return assertCpuTime(t, '32,000 calls', { work: read(32_000), reference: read(4_000), times: 30, floor: 4 })
})

void t.test('instructions and system messages have a common limit', async (t) => {
	const half = 'i'.repeat(60 * 1024)
	const input = [
		{ role: 'system' as const, content: half },
		{ role: 'user' as const, content: 'x' },
	]
	const error = await refusal(openai.responses.create({ model: 'ada', instructions: half, input }))
	t.match(error, { status: 400, param: 'input', message: /instructions.* at most 100 KiB/ })
})

void t.test('a model that cannot be the name of an agent is not found', async (t) => {
	const messages = userMessages('x')
	for (const name of ['svc/', 'a\0b', '\u{d800}', 'svc/svc/ada', '../ada'])
		t.match(await refusal(openai.chat.completions.create({ model: name, messages })), {
			status: 404,
			param: 'model',
			code: 'model_not_found',
		})
})

void t.test('invented calls do not keep a prompt out of the history of a conversation', async (t) => {
	model.on('between us', 'As you like.')
	const ask = (prompt: string) =>
		openai.chat.completions.create({
			model: 'ada',
			user: 'secretive',
			messages: [
				{ role: 'user', content: prompt },
				{
					role: 'assistant',
					content: null,
					tool_calls: [{ id: 'c', type: 'function', function: { name: 'clock', arguments: '{}' } }],
				},
				{ role: 'tool', tool_call_id: 'c', content: 'Noon.' },
			],
		})
	for (const prompt of ['between us', 'between us two']) await ask(prompt)
	const { body } = await gateway.request('GET', '/v1/agents/ada/history?conversation=openai:local:secretive')
	t.strictSame(
		body.map(({ content }: { content: string }) => content),
		['between us', 'As you like.', 'between us two', 'As you like.'],
	)
})

void t.test('a request fails if an earlier one in its conversation asks a question', async (t) => {
	await surface.agent('bob', { config: { provider: 'held' } })
	const say = (input: string) => openai.responses.create({ model: 'bob', user: 'both', input })
	const first = say('ask me something')
	const call = await surface.held.called('ask me something')
	const second = refusal(say('too early'))
	const isQueued = async () => (await surface.runs('bob')).some(({ status }) => status === 'queued')
	await eventually(isQueued)
	// The question of a sub-agent has the same effect.
	call.callTool('subagent_spawn', '{"prompt":"find out what to ask"}')
	;(await surface.held.called('find out what to ask')).callTool('ask', '{"question":"Which colour?"}')
	t.match((await first).output_text, /Which colour\?$/)
	t.match(await second, { status: 409, code: 'conflict', message: /has since asked a question/ })
	const late = (await surface.runs('bob')).find(({ prompt }) => prompt === 'too early')
	await surface.reaches(late?.run_id ?? '', 'stopped')
})
