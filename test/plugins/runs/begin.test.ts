/** Runs that execute while their start is being written. */
import t from 'tap'
import { apiOf, makeHome, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'
import { follow } from '../../support/runs.ts'

const config = (url: string): string => `${providersAt({ mock: url })}default_provider: mock\n`

void t.test('one of several concurrent prompts begins, the others wait, and each makes one model call', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const gateway = await startGateway({ config: config(model.url) })
	t.teardown(() => gateway.stop())
	const ada = await follow(t, gateway, 'ada')
	const prompts = Array.from({ length: 20 }, (_, n) => `prompt ${n}`)
	const ids = await Promise.all(prompts.map((prompt) => ada.start(prompt)))
	// Once all are accepted, so that none finds the conversation free.
	for (const prompt of prompts) void model.called(prompt).then((call) => call.answer('Yes.'))
	for (const id of ids) t.equal((await ada.ended(id)).event_type, 'run.completed')
	t.equal(model.calls.length, ids.length, 'a rejected start makes no model call')
	t.equal(ids.filter((id) => ada.typesOf(id)[0] === 'run.queued').length, ids.length - 1)
	for (const id of ids) t.equal(ada.typesOf(id).filter((type) => type === 'run.started').length, 1)
	const { body } = await ada.call('runs')
	t.equal(body.length, ids.length)
})

void t.test('the first events and the record of a run survive a kill right after the response', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const home = makeHome({ config: `${config(model.url)}workers: { threads: 1, runs_per_thread: 1 }\n` }, t)
	const first = await spawnGateway(home)
	const gateway = apiOf(() => first)
	const ada = await follow(t, gateway, 'ada')
	const bob = await follow(t, gateway, 'bob')
	const cleo = await follow(t, gateway, 'cleo')
	const working = await ada.start('works')
	await model.called('works')
	await cleo.start('works in the reserve')
	await model.called('works in the reserve')
	// It begins although no thread is free.
	const waiting = await bob.start('waits')
	await bob.waitFor(waiting, 'message.user')
	await first.kill()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const adaAgain = await follow(t, second, 'ada')
	const bobAgain = await follow(t, second, 'bob')
	;(await model.called('works', 2)).answer('Done.')
	;(await model.called('works in the reserve', 2)).answer('Done.')
	;(await model.called('waits')).answer('Done, too.')
	t.equal((await adaAgain.ended(working)).event_type, 'run.completed')
	t.equal((await bobAgain.ended(waiting)).event_type, 'run.completed')
	const typesOf = async (run_id: string): Promise<string[]> =>
		(await second.request('GET', `/v1/audit?run_id=${run_id}`)).body.events.map(
			({ event_type }: { event_type: string }) => event_type,
		)
	t.equal((await typesOf(working)).filter((type) => type === 'run.resumed').length, 1)
	const types = await typesOf(waiting)
	t.notOk(types.includes('run.resumed'), 'a run that had no thread was not interrupted')
	t.equal(types.filter((type) => type === 'run.started').length, 1)
})

void t.test('a run that waits when the gateway stops begins after a start in the same process', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const settings = `${config(model.url)}workers: { threads: 1, runs_per_thread: 1 }\nserver: { shutdown_grace_s: 0 }\n`
	const home = makeHome({ config: settings }, t)
	const first = await startGateway({ home })
	const ada = await follow(t, first, 'ada')
	await ada.start('works')
	await model.called('works')
	const { run_id } = (await ada.call('runs', { prompt: 'waits', conversation: 'another' })).body
	await ada.waitFor(run_id, 'message.user')
	await first.stop()

	const second = await startGateway({ home })
	t.teardown(() => second.stop())
	const again = await follow(t, second, 'ada')
	;(await model.called('works', 2)).answer('Done.')
	;(await model.called('waits')).answer('Done, too.')
	t.equal((await again.ended(run_id)).event_type, 'run.completed')
	t.notOk(again.typesOf(run_id).includes('run.resumed'))
})
