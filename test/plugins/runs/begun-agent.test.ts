/** Changes of an agent while its run waits for a place: the run uses the agent as it is when the run gets the place. */
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

async function withWaitingRun(t: Test) {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const gateway = await startGateway({
		config: `
${providersAt({ mock: model.url })}default_provider: mock
workers: { threads: 1, runs_per_thread: 1 }
`,
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const start = async (prompt: string): Promise<string> =>
		(await ada.call('runs', { prompt, conversation: prompt })).body.run_id
	await start('works')
	const works = await model.called('works')
	const waiting = await start('waits')
	await ada.waitFor(waiting, 'message.user')
	t.equal(model.calls.length, 1)
	const change = async (config: Record<string, unknown>): Promise<void> => {
		const { status } = await gateway.request('PATCH', '/v1/agents/ada', { body: { config } })
		t.equal(status, 200)
	}
	return { gateway, model, ada, works, waiting, change }
}

void t.test('a waiting run uses the changed model', async (t) => {
	const { model, ada, works, waiting, change } = await withWaitingRun(t)
	await change({ model: 'another' })
	works.answer('Done.')
	const call = await model.called('waits')
	t.equal(call.body.model, 'another')
	call.answer('Done, too.')
	t.equal((await ada.ended(waiting)).event_type, 'run.completed')
})

void t.test('a waiting run respects the changed limit of tokens', async (t) => {
	const { model, ada, works, waiting, change } = await withWaitingRun(t)
	await change({ limits: { tokens_per_day: 1 } })
	works.answer('Done.')
	const end = await eventually(
		() => ada.typesOf(waiting).find((type) => /^run\.(completed|failed)$/.test(type)) ?? model.calls[1]?.prompt,
	)
	t.equal(end, 'run.failed', 'the model is not called')
})

void t.test('a waiting run of a deleted agent is stopped, also if the name is used again', async (t) => {
	const { gateway, model, ada, waiting } = await withWaitingRun(t)
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status, 204)
	const again = await follow(t, gateway, 'ada')
	const run_id = await again.start('works for the new agent')
	;(await model.called('works for the new agent')).answer('Done.')
	t.equal((await again.ended(run_id)).event_type, 'run.completed')
	t.equal((await ada.ended(waiting)).event_type, 'run.stopped')
	t.notOk(model.calls.some(({ prompt }) => prompt === 'waits'))
})
