import { queryObjects } from 'node:v8'
import t from 'tap'
import { Generation } from '../../../core/host/generation.ts'
import { startGateway } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

/** The module keeps the context of its first instance, as a cache or a pending request may. */
const KEEPER = `
let first
export default { name: 'keeper', start(ctx) { first ??= ctx } }
`

void t.test('an instance that is still referenced does not retain all later generations', async (t) => {
	const gateway = await startGateway({
		config: 'plugins:\n  keeper: true\n',
		files: { 'plugins/keeper/index.ts': KEEPER },
	})
	t.teardown(() => gateway.stop())
	// One plugin after another, so that each generation shares instances with its neighbours.
	const change = async (): Promise<void> => {
		for (const name of ['keeper', 'skills', 'memory'])
			for (const on of [false, true]) {
				const reply = await gateway.request('PATCH', '/v1/config', { body: { set: { [`plugins.${name}`]: on } } })
				t.equal(reply.status, 200, JSON.stringify(reply.body))
			}
	}
	const retained = (): number => queryObjects(Generation, { format: 'count' })
	await change()
	const before = retained()
	await change()
	await change()
	t.ok(await eventually(retained, (count) => count <= before + 1, 10_000), 'of 12 further generations')
})
