/** A gateway is killed during a run, and the disk is full when it starts again. */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import t from 'tap'
import { makeHome, send, startGateway } from '../../support/gateway.ts'
import { startHeldModel } from '../../support/held-model.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

void t.test('it starts, its data can be read, and the run continues once there is room', async (t) => {
	const model = await startHeldModel()
	t.teardown(() => model.stop())
	const home = makeHome({
		config: `providers:\n  held:\n    kind: openai\n    base_url: ${model.url}\n    api_key: test\n    model: held\n`,
	})
	t.teardown(() => fs.rmSync(home, { recursive: true, force: true }))
	const killed = await spawnGateway(home)
	await send(`${killed.url}/v1/agents`, 'POST', { body: { name: 'ada' } })
	const { body } = await send(`${killed.url}/v1/agents/ada/runs`, 'POST', { body: { prompt: 'Go on.' } })
	await model.called('Go on.')
	await killed.kill()

	const { statfsSync } = fs
	const setRoom = (isFull: boolean): void => {
		const full = (path: string) => Object.assign(statfsSync(path), { bavail: 0 })
		Object.assign(fs, { statfsSync: isFull ? full : statfsSync })
		syncBuiltinESMExports()
	}
	setRoom(true)
	t.teardown(() => setRoom(false))
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const status = async (): Promise<string> => (await gateway.request('GET', `/v1/runs/${body.run_id}`)).body.status
	t.equal(await status(), 'started')
	const refused = await gateway.request('POST', '/v1/agents', { body: { name: 'bob' } })
	t.equal(refused.body.code, 'storage_full')

	setRoom(false)
	void model.called('Go on.', 2).then((call) => call.answer('Done.'))
	await eventually(async () => (await status()) === 'completed')
})
