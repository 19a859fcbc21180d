/** A restart with a full disk, after a kill during a run. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import t from 'tap'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { providersAt } from '../../support/providers.ts'
import { eventually } from '../../support/wait.ts'

void t.test('the gateway starts and serves reads, and the run continues once there is space', async (t) => {
	const model = await startManualModel()
	t.teardown(() => model.stop())
	const home = makeHome({ config: providersAt({ held: model.url }) }, t)
	const killed = await spawnGateway(home)
	await send(`${killed.url}/v1/agents`, 'POST', { body: { name: 'ada' } })
	const { body } = await send(`${killed.url}/v1/agents/ada/runs`, 'POST', { body: { prompt: 'Go on.' } })
	await model.called('Go on.')
	await killed.kill()

	const { statfsSync } = fs
	const setFull = (isFull: boolean): void => {
		const full = (path: string) => Object.assign(statfsSync(path), { bavail: 0 })
		Object.assign(fs, { statfsSync: isFull ? full : statfsSync })
		syncBuiltinESMExports()
	}
	setFull(true)
	t.teardown(() => setFull(false))
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const status = async (): Promise<string> => (await gateway.request('GET', `/v1/runs/${body.run_id}`)).body.status
	t.equal(await status(), 'started')
	const refused = await gateway.request('POST', '/v1/agents', { body: { name: 'bob' } })
	t.equal(refused.body.code, 'storage_full')

	setFull(false)
	void model.called('Go on.', 2).then((call) => call.answer('Done.'))
	await eventually(async () => (await status()) === 'completed')
})
