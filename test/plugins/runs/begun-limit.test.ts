/** Runs that are started while `LIMIT` runs already wait in memory for a place. Only their ids are kept there, and they begin with a place. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import { openStream } from '../../support/sse.ts'

/** As in plugins/runs/begin.ts. */
const LIMIT = 256
const AT_ONCE = 32

void t.test('runs begin while many runs of another agent wait, also after a reload', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = `
${providersAt({ mock: model.url })}default_provider: mock
workers: { threads: 1, runs_per_thread: 1 }
runs: { max_waiting_per_agent: 1000, max_waiting_total: 1000 }
`
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	await ada.start('works')
	await model.called('works')
	for (let at = 0; at < LIMIT; at += AT_ONCE) {
		const prompts = Array.from({ length: AT_ONCE }, (_, n) => `waits ${at + n}`)
		const replies = await Promise.all(prompts.map((prompt) => ada.call('runs', { prompt, conversation: prompt })))
		for (const { status, body } of replies) if (status !== 200) throw new Error(JSON.stringify(body))
	}
	const start = async (prompt: string): Promise<string> =>
		(await bob.call('runs', { prompt, conversation: prompt })).body.run_id
	const working = await start('works in the reserve')
	const works = await model.called('works in the reserve')
	const waiting = await start('waits for the reserve')
	const cancelled = await start('is cancelled while it waits')
	t.equal((await gateway.request('POST', `/v1/runs/${cancelled}/cancel`)).status, 200)
	t.equal((await bob.ended(cancelled)).event_type, 'run.stopped')
	t.strictSame(
		bob.typesOf(cancelled),
		['run.started', 'message.user', 'run.stopped'],
		'the log says what was cancelled',
	)
	const reloaded = stream.waitFor('config.reloaded')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), config.replace('total: 1000', 'total: 1001'))
	await reloaded
	t.strictSame(bob.typesOf(waiting), [])
	works.answer('Done.')
	;(await model.called('waits for the reserve')).answer('Done.')
	for (const run_id of [working, waiting]) {
		t.equal((await bob.ended(run_id)).event_type, 'run.completed')
		t.equal(bob.typesOf(run_id).filter((type) => type === 'run.started').length, 1)
		t.notOk(bob.typesOf(run_id).includes('run.resumed'))
	}
	t.equal(model.calls.length, 3, 'the other runs still wait')
	t.equal((await gateway.request('DELETE', '/v1/agents/ada')).status, 204)
})
