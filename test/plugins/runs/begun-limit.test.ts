/** A run that begins while as many wait for a place as are kept in memory: it gets a job. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startHeldModel } from '../../support/held-model.ts'
import { follow } from '../../support/runs.ts'

/** As in plugins/runs/begin.ts. */
const LIMIT = 256
const AT_ONCE = 32

void t.test('a run that finds a place at once begins, however many of another agent wait', async (t) => {
	const model = await startHeldModel()
	t.teardown(() => model.stop())
	const gateway = await startGateway({
		config: `
providers:
  mock: { kind: openai, base_url: '${model.url}', api_key: key-of-mock, model: m }
default_provider: mock
workers: { threads: 1, runs_per_thread: 1 }
runs: { max_waiting_per_agent: 1000, max_waiting_total: 1000 }
`,
	})
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	await ada.start('works')
	await model.called('works')
	for (let at = 0; at < LIMIT; at += AT_ONCE) {
		const prompts = Array.from({ length: AT_ONCE }, (_, n) => `waits ${at + n}`)
		const replies = await Promise.all(prompts.map((prompt) => ada.call('runs', { prompt, conversation: prompt })))
		for (const { status, body } of replies) if (status !== 200) throw new Error(JSON.stringify(body))
	}
	const run_id = await bob.start('works in the reserve')
	;(await model.called('works in the reserve')).answer('Done.')
	t.equal((await bob.ended(run_id)).event_type, 'run.completed')
	t.equal(bob.typesOf(run_id).filter((type) => type === 'run.started').length, 1)
	t.notOk(bob.typesOf(run_id).includes('run.resumed'))
	t.equal(model.calls.length, 2, 'the others wait')
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status, 204)
})
