/** Reloads of the plugin during runs: each run keeps its one place, or waits for one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'
import { openStream } from '../../support/sse.ts'

void t.test('after a reload, no run takes a second place', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const config = `
${providersAt({ mock: model.url })}default_provider: mock
workers: { threads: 1, runs_per_thread: 3 }
`
	const gateway = await startGateway({ config })
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	const start = async (prompt: string): Promise<string> =>
		(await ada.call('runs', { prompt, conversation: prompt })).body.run_id
	const ids: string[] = []
	for (const prompt of ['first', 'second', 'third']) {
		ids.push(await start(prompt))
		await model.called(prompt)
	}
	const waiting = await start('waits')
	await ada.waitFor(waiting, 'message.user')

	const reloaded = stream.waitFor('config.reloaded')
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), `${config}runs: { max_waiting: 77 }\n`)
	await reloaded
	// It runs in the reserve. Once it has ended, the new instance has claimed the other runs.
	const other = await bob.start('after the reload')
	;(await model.called('after the reload')).answer('Done.')
	await bob.ended(other)

	for (const prompt of ['first', 'second']) (await model.called(prompt)).answer('Done.')
	;(await model.called('waits')).answer('Done.')
	// The third run still works. Two places are free, and no run waits.
	ids.push(waiting, await start('fourth'), await start('fifth'))
	await model.called('fourth')
	await model.called('fifth')
	for (const prompt of ['third', 'fourth', 'fifth']) (await model.called(prompt)).answer('Done.')
	for (const id of ids) {
		t.equal((await ada.ended(id)).event_type, 'run.completed')
		t.equal(ada.typesOf(id).filter((type) => type === 'run.started').length, 1)
		t.notOk(ada.typesOf(id).includes('run.resumed'))
	}
	t.equal(model.calls.length, 7, 'each run makes one model call')
})
