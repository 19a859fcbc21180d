/** A run whose journal has a step of a newer version of the gateway. */
import { join } from 'node:path'
import t from 'tap'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { newId, now } from '../../../core/util/ids.ts'
import { endedRun } from '../../support/ended-run.ts'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'

const unknownSteps = [
	{ kind: 'plan', content: 'a kind of step that does not exist' },
	{ kind: 'remark', v: 2, content: 'a version that does not exist' },
]

void t.test('a run with an unknown step fails with upgrade_incompatible', { timeout: 120_000 }, async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const home = makeHome({ config: providersAt({ held: model.url }) }, t)
	const env = { SVC_CLUSTER: '' }
	const before = await spawnGateway(home, env)
	await send(`${before.url}/v1/agents`, 'POST', { body: { name: 'anna' } })
	const runs: string[] = []
	for (const [at] of unknownSteps.entries()) {
		const prompt = `run ${at}`
		const { body } = await send(`${before.url}/v1/agents/anna/runs`, 'POST', { body: { prompt, conversation: prompt } })
		runs.push(body.run_id)
		await model.called(prompt)
	}
	await before.kill()

	const engine = await openLmdb({ path: join(home, 'data') })
	for (const [at, run] of runs.entries()) {
		const { last } = await engine.log.journal(run)
		const event = {
			event_id: newId(),
			timestamp: now(),
			agent_id: 'anna',
			run_id: run,
			sequence: last + 1,
			event_type: 'message.remark',
			payload: { content: 'text of the step' },
		}
		await engine.log.append(run, last, [{ event, step: unknownSteps[at] }])
	}
	await engine[Symbol.asyncDispose]()

	const after = await startGateway({ home, env })
	t.teardown(() => after.stop())
	for (const [at, named] of ['"plan", version 1', '"remark", version 2'].entries()) {
		t.match(await endedRun(after.url, String(runs[at])), {
			status: 'failed',
			error: { code: 'upgrade_incompatible', message: `(${named})` },
		})
		const { events } = (await send(`${after.url}/v1/audit?run_id=${runs[at]}`, 'GET')).body
		t.ok(JSON.stringify(events).includes('text of the step'), 'the text of the step is kept')
	}
	t.equal(model.calls.length, unknownSteps.length, 'the model is not called again')
})
