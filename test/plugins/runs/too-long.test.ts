/** What a refusal of a request as too long teaches: enough for its run, and nothing that keeps others from being asked. */
import t from 'tap'
import type { ModelAnswer } from '../../../core/protocol.ts'
import { contextWith, learnFrom } from '../../../plugins/runs/context.ts'
import { NO_MARKS } from '../../../sandbox/context/earlier.ts'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { startScriptedModels } from '../../support/scripted-model.ts'
import { latest, startSmallModel } from '../../support/small-model.ts'
import type { SmallModel, SmallReply } from '../../support/small-model.ts'

/** Tells no limit. */
const refusal = { status: 400, message: 'The prompt is too long.' }

/** What was learned of a model holds for the whole process, so each test has a provider of its own. */
const configOf = ({ url }: SmallModel, name: string): string =>
	`providers:\n  ${name}: {kind: openai, base_url: '${url}', api_key: test, model: m, context_window: 32768}\n`

void t.test('after prompts that are refused as too long, the model is still sent others', async (t) => {
	const model = await startSmallModel(t, Infinity, (request): SmallReply =>
		latest(request).prompt.startsWith('Read this') ? refusal : 'Noted.',
	)
	const gateway = await startGateway({ config: configOf(model, 'dense') })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const tryTo = async (prompt: string) => ada.ended(await ada.start(prompt))
	for (let n = 0; n < 8; n++)
		t.match(await tryTo(`Read this, ${n}: ${'a b c d e '.repeat(500)}`), {
			event_type: 'run.failed',
			payload: { code: 'context_too_long', error: /The prompt is too long/ },
		})
	t.equal((await tryTo('Hello.')).event_type, 'run.completed')
})

void t.test('a conversation is shortened until its model takes it, and from then on as short', async (t) => {
	let refused = 0
	const model = await startSmallModel(t, Infinity, ({ messages, tools }): SmallReply => {
		if (JSON.stringify([messages, tools]).length < 40_000) return 'Noted.'
		refused++
		return refusal
	})
	const gateway = await startGateway({ config: configOf(model, 'silent') })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada', { config: { context: { summary: false } } })
	const counts: number[] = []
	for (let n = 0; n < 12; n++) {
		await ada.complete(`Page ${n}: ${'the harbour has many ships. '.repeat(250)}`)
		counts.push(refused)
	}
	t.ok(refused >= 1 && refused <= 3, `refused after each run: ${counts.join(' ')}`)
})

void t.test('an answer that took several calls does not change the estimated size of a token', async (t) => {
	const models = await startScriptedModels()
	t.teardown(() => models.stop())
	const { url, requests } = models.add(({ body }, n) => {
		const usage = {
			prompt_tokens: Math.ceil(JSON.stringify([body.messages, body.tools]).length / 4),
			completion_tokens: 1,
		}
		const choice = { index: 0, message: { content: 'Once ' }, finish_reason: n === 0 || n > 3 ? 'stop' : 'length' }
		return { json: { choices: [choice], usage } }
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

const answer = (fields: Partial<ModelAnswer>): ModelAnswer => ({
	content: 'Yes.',
	tool_calls: [],
	usage: { input_tokens: 500, output_tokens: 1 },
	provider: 'learned',
	model: 'm',
	finish_reason: 'stop',
	...fields,
})

void t.test('a learned limit rises with each answer, and is never below what the model has taken', (t) => {
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
	t.equal(limit(), undefined, 'the limit is gone in the end')
	t.end()
})
