/** Limits that the gateway learns when a model rejects a request as too long. They must not prevent later runs. */
import t from 'tap'
import type { ModelAnswer } from '../../../core/protocol.ts'
import { contextWith, learnFrom } from '../../../plugins/runs/context.ts'
import { NO_MARKS } from '../../../sandbox/context/earlier.ts'
import type { ModelOrder } from '../../../sandbox/order.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'
import { latest, startSmallModel } from '../../support/small-model.ts'
import type { SmallModel, SmallReply } from '../../support/small-model.ts'

/** An error that states no limit. */
const refusal = { status: 400, message: 'The prompt is too long.' }

/** Learned limits of a model apply to the whole process, so each test has its own provider. */
const configOf = ({ url }: SmallModel, name: string): string =>
	`providers:\n  ${name}: {kind: openai, base_url: '${url}', api_key: test, model: m, context_window: 32768}\n`

void t.test('after prompts that are too long, the model still receives others', async (t) => {
	const model = await startSmallModel(t, Infinity, (request): SmallReply =>
		latest(request).prompt.startsWith('Read this') ? refusal : 'Noted.',
	)
	const gateway = await startGateway({ config: configOf(model, 'dense') })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const run = async (prompt: string) => ada.ended(await ada.start(prompt))
	for (let n = 0; n < 8; n++)
		t.match(await run(`Read this, ${n}: ${'a b c d e '.repeat(500)}`), {
			event_type: 'run.failed',
			payload: { code: 'context_too_long', error: /The prompt is too long/ },
		})
	t.equal((await run('Hello.')).event_type, 'run.completed')
})

void t.test('a conversation is shortened until its model accepts it, and stays that short', async (t) => {
	let rejections = 0
	const model = await startSmallModel(t, Infinity, ({ messages, tools }): SmallReply => {
		if (JSON.stringify([messages, tools]).length < 40_000) return 'Noted.'
		rejections++
		return refusal
	})
	const gateway = await startGateway({ config: configOf(model, 'silent') })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', { config: { context: { summary: false } } })
	const counts: number[] = []
	for (let n = 0; n < 12; n++) {
		await ada.complete(`Page ${n}: ${'the harbour has many ships. '.repeat(250)}`)
		counts.push(rejections)
	}
	t.ok(rejections >= 1 && rejections <= 3, `rejections after each run: ${counts.join(' ')}`)
})

void t.test('a window that the server states stays valid, also after many answers', async (t) => {
	const model = await startSmallModel(t, 12_000, () => 'Noted.')
	const gateway = await startGateway({ config: configOf(model, 'stating') })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', { config: { context: { summary: false } } })
	const page = (n: number) => ada.complete(`Page ${n}: ${'the harbour has many ships. '.repeat(250)}`)
	for (let n = 0; n < 8; n++) await page(n)
	t.equal(model.refused(), 1)
	for (let n = 0; n < 100; n++) learnFrom(answer({ provider: 'stating' }))
	for (let n = 0; n < 8; n++) await page(n)
	t.equal(model.refused(), 1)
})

void t.test('an answer of several calls does not change the estimated size of a token', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const { url, requests } = models.add(({ body }, n) => {
		const usage = {
			prompt_tokens: Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4),
			completion_tokens: 1,
		}
		return chatCompletion({ content: 'Once ' }, n === 0 || n > 3 ? 'stop' : 'length', usage)
	})
	const gateway = await startGateway({ config: `providers:\n  told: {kind: openai, base_url: '${url}', model: m}\n` })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const factor = (): number =>
		contextWith({}, [{ provider: 'told', kind: 'openai', model: 'm', timeout_ms: 1 }], NO_MARKS).factors['told/m'] ?? 0
	await ada.complete('Hello.')
	const before = factor()
	t.match(await ada.read(await ada.complete('Tell me a story.')), { answer: 'Once Once Once Once ' })
	t.equal(requests.length, 5)
	t.ok(factor() < 1.5 * before, `${before} became ${factor()}`)
})

void t.test('an answer that the end of the window truncates is retried with a shorter request', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const call = {
		index: 0,
		id: 'c1',
		function: { name: 'memory_stm_write', arguments: '{"key": "ship", "value": "Ann' },
	}
	for (const [name, cut] of Object.entries<object>({
		call: { tool_calls: [call] },
		thought: { reasoning_content: 'Ann' },
	})) {
		let window = 0
		const { url } = models.add(({ body }) => {
			const size = Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4)
			// Room for four pages of 1,700 tokens, and no more than the beginning of an answer after them.
			window ||= size + 8_000
			const room = window - size
			const isQuestion = /Which ship/.test(body.messages.at(-1).content)
			const [message, finish_reason, written]: [object, string, number] =
				isQuestion && room < 2_000 ? [cut, 'length', room] : [{ content: 'Noted.' }, 'stop', 2]
			return chatCompletion(message, finish_reason, { prompt_tokens: size, completion_tokens: written })
		})
		const gateway = await startGateway({
			config: `providers:\n  ${name}: {kind: openai, base_url: '${url}', model: m}\n`,
		})
		t.teardown(() => gateway.stop())
		const ada = await follow(t, gateway, 'ada', { config: { context: { summary: false } } })
		await ada.complete('Hello.')
		for (let n = 0; n < 4; n++) await ada.complete(`Page ${n}: ${'the harbour has many ships. '.repeat(250)}`)
		const run_id = await ada.start('Which ship?')
		t.equal((await ada.ended(run_id)).event_type, 'run.completed', name)
		const types = (await gateway.request('GET', `/v1/audit?run_id=${run_id}`)).body.events.map(
			({ event_type }: { event_type: string }) => event_type,
		)
		t.equal(types.filter((type: string) => type === 'context.shrunk').length, 1, name)
		t.equal(types.filter((type: string) => type === 'model.retry').length, 0, name)
	}
})

void t.test('a limit of the answer is not mistaken for the end of the window', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const function_ = { name: 'memory_stm_write', arguments: '{"key": "sh' }
	const { url, requests } = models.add(({ body }) => {
		const isQuestion = /Which ship/.test(body.messages.at(-1).content)
		const message = isQuestion ? { tool_calls: [{ index: 0, id: 'c1', function: function_ }] } : { content: 'Noted.' }
		const usage = {
			prompt_tokens: Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4),
			completion_tokens: isQuestion ? 100 : 2,
		}
		return chatCompletion(message, isQuestion ? 'length' : 'stop', usage)
	})
	const gateway = await startGateway({ config: `providers:\n  short: {kind: openai, base_url: '${url}', model: m}\n` })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', { config: { context: { summary: false } } })
	for (let n = 0; n < 6; n++) await ada.complete(`Page ${n}: ${'the harbour has many ships. '.repeat(250)}`)
	const before = requests.length
	t.equal((await ada.ended(await ada.start('Which ship?'))).event_type, 'run.failed')
	t.equal(requests.length - before, 2, 'one retry with a shorter request')
	t.equal(
		contextWith({}, [{ provider: 'short', kind: 'openai', model: 'm', timeout_ms: 1 }], NO_MARKS).limits['short/m'],
		undefined,
	)
})

void t.test('the error of an answer that is truncated for another reason states what to change', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const call = {
		tool_calls: [{ index: 0, id: 'c1', function: { name: 'memory_stm_write', arguments: '{"key": "sh' } }],
	}
	for (const [set, message, word, written, error] of [
		['params: {max_tokens: 50}', call, 'length', 50, /; raise config\.max_tokens of the agent$/],
		['extra_body: {max_tokens: 50}', call, 'length', 50, /; raise the limit in extra_body of provider bound$/],
		[
			'headers: {}',
			call,
			'length',
			5_000,
			/set context_window of provider bound to its size; otherwise set config\.max/,
		],
		['headers: {}', call, 'content_filter', 5, /\(content_filter\) in the middle of a tool call$/],
		['headers: {}', { reasoning_content: 'Well' }, 'length', 5_000, /raise max_tokens, or set context_window/],
	] as const) {
		const usage = { prompt_tokens: 900, completion_tokens: written }
		const { url } = models.add(() => chatCompletion(message, word, usage))
		const config = `providers:\n  bound: {kind: openai, base_url: '${url}', model: m, ${set}}\n`
		const gateway = await startGateway({ config })
		t.teardown(() => gateway.stop())
		const ada = await follow(t, gateway, 'ada')
		t.match((await ada.ended(await ada.start('Which ship?'))).payload, { error })
	}
})

const answer = (fields: Partial<ModelAnswer>): ModelAnswer => ({
	content: 'Yes.',
	tool_calls: [],
	usage: { input_tokens: 500, output_tokens: 1 },
	provider: 'learned',
	model: 'm',
	finish_reason: 'stop',
	...fields,
})

void t.test('a learned limit increases with each answer, and is never below an accepted request', (t) => {
	const order = { provider: 'learned', kind: 'openai' as const, model: 'm', timeout_ms: 1 }
	const limit = (): number | undefined => contextWith({}, [order], NO_MARKS).limits['learned/m']
	learnFrom(answer({ limit: 4_000 }))
	t.equal(limit(), 4_000)
	learnFrom(answer({}))
	t.equal(limit(), 4_040)
	learnFrom(answer({ usage: { input_tokens: 6_000, output_tokens: 1 } }))
	t.equal(limit(), 6_000)
	learnFrom(answer({ limit: 3_000 }))
	t.equal(limit(), 6_000)
	for (let n = 0; n < 1_000; n++) learnFrom(answer({}))
	t.equal(limit(), undefined, 'the limit is removed in the end')
	t.end()
})

void t.test('a stated window stays valid until the settings change or the model accepts more', (t) => {
	const order = {
		provider: 'stated',
		kind: 'openai' as const,
		base_url: 'http://a/v1',
		model: 'm',
		context_window: 32_768,
		timeout_ms: 1,
	}
	const limit = (changed: Partial<ModelOrder> = {}): number | undefined =>
		contextWith({}, [{ ...order, ...changed }], NO_MARKS).limits['stated/m']
	const learn = (fields: Partial<ModelAnswer>): void => learnFrom(answer({ provider: 'stated', ...fields }), [order])
	learn({ limit: 6_000, window: 8_192 })
	t.equal(limit(), 6_881, 'the limit leaves room for an answer, which max_tokens may limit')
	t.equal(limit({ params: { max_tokens: 100 } }), 7_768)
	for (let n = 0; n < 1_000; n++) learn({})
	t.equal(limit(), 6_881)
	for (const changed of [{ base_url: 'http://b/v1' }, { context_window: 65_536 }])
		t.equal(limit(changed), undefined, JSON.stringify(changed))
	learn({ limit: 3_000, window: 4_096 })
	t.equal(limit(), 3_440, 'the latest stated window applies')
	learn({ usage: { input_tokens: 4_097, output_tokens: 1 } })
	t.equal(limit(), undefined)
	learn({ limit: 3_000, window: 8_192 })
	const { now } = Date
	t.teardown(() => (Date.now = now))
	Date.now = () => now() + 25 * 60 * 60 * 1000
	t.equal(limit(), undefined, 'a stated window expires after a day')
	t.end()
})
