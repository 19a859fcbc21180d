/** GET /v1/runs/{run_id}/steps and `svc runs steps`. */
import t from 'tap'
import type { RunStep } from '../../../plugins/runs/steps.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import { startModelServer } from '../../support/model-server.ts'
import { assertError } from '../../support/error-response.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: `${providersAt({ mock: model.url })}default_provider: mock\n`,
})
t.teardown(() => gateway.stop())
t.teardown(() => model.stop())
const ada = await follow(t, gateway, 'ada')

const stepsOf = async (run_id: string): Promise<RunStep[]> => {
	const { status, body } = await gateway.request('GET', `/v1/runs/${run_id}/steps`)
	t.equal(status, 200)
	return body.steps as RunStep[]
}

void t.test('each model call and each tool call is a step, with its times, tokens and error', async (t) => {
	const usage = { prompt_tokens: 60, completion_tokens: 5 }
	const tools = [
		{ name: 'memory_stm_read', arguments: {}, id: 'c1' },
		{ name: 'memory_stm_write', arguments: { key: 7 }, id: 'c2' },
	]
	model.on('two calls', { tools, usage }, { text: '', usage }, { text: 'Done.', usage })
	const run_id = await ada.complete('two calls')
	const [first, read, write, last, ...more] = await stepsOf(run_id)
	t.strictSame(more, [])
	t.match(first, {
		kind: 'model',
		provider: 'mock',
		model: 'mock-model',
		attempts: 1,
		finish_reason: 'tool_calls',
		usage: { input_tokens: 60, output_tokens: 5 },
		error: null,
	})
	t.match(read, { kind: 'tool', name: 'memory.stm_read', call_id: 'c1', parent_call_id: null, error: null })
	t.match(write, { kind: 'tool', name: 'memory.stm_write', call_id: 'c2', error: 'invalid_arguments' })
	t.match(last, { kind: 'model', attempts: 2, finish_reason: 'stop', usage: { input_tokens: 120 }, error: null })
	for (const step of [first, read, write, last]) {
		t.ok(step && step.ended_at !== null && step.ended_at >= step.started_at && Number(step.duration_ms) >= 0)
	}

	const shown = await svcFor(gateway)(['runs', 'steps', run_id])
	t.equal(shown.code, 0)
	t.match(shown.stdout, /mock \(mock-model\) .*60 in, 5 out .*tool_calls/)
	t.match(shown.stdout, /memory\.stm_write .*invalid_arguments/)
})

void t.test('a call in progress has no end, a failed one has its error', async (t) => {
	model.on('ask me', { tools: [{ name: 'ask', arguments: { question: 'Well?' } }] }, 'Fine.')
	const waiting = await ada.start('ask me')
	await ada.waitFor(waiting, 'run.paused')
	t.match(await stepsOf(waiting), [{ kind: 'model' }, { kind: 'tool', name: 'ask', ended_at: null, duration_ms: null }])

	model.on('refuse', { status: 401, message: 'no' })
	const bob = await follow(t, gateway, 'bob')
	const failed = await bob.start('refuse')
	await bob.ended(failed)
	t.match(await stepsOf(failed), [{ kind: 'model', usage: null, finish_reason: null, error: 'model_rejected' }])
	assertError(t, await gateway.request('GET', '/v1/runs/none/steps'), { status: 404, code: 'not_found' })
})

void t.test('texts of steps are truncated', async (t) => {
	const name = 'x'.repeat(900 * 1024)
	model.on('long name', { tools: [{ name, arguments: {}, id: `id-${'y'.repeat(500)}` }] }, 'Done.')
	const cleo = await follow(t, gateway, 'cleo', {
		config: { context_window: 1_000_000, context: { tokens: 900_000 }, limits: { tokens: 10_000_000 } },
	})
	const [, call] = await stepsOf(await cleo.complete('long name'))
	t.match(call, { kind: 'tool', name: /^x{199}…$/, call_id: /^id-y{196}…$/, error: 'tool_unknown' })
})
