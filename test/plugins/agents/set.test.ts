/** `svc agents update --set` with keys of nested maps. */
import t from 'tap'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
const update = (...set: string[]) => svc(['agents', 'update', 'ada', '--set', ...set, '--json'])

void t.test('setting a nested key leaves the other keys of its map unchanged', async (t) => {
	await svc(['agents', 'create', 'ada', '--set', 'limits.steps=20', 'limits.cost_per_day=1.5', 'motto='])
	const before = { steps: 20, cost_per_day: 1.5 }
	t.strictSame((await update('limits.tokens=900')).json().config, { limits: { ...before, tokens: 900 } })
	t.strictSame((await update('limits.steps=30', 'temperature=0.5')).json().config, {
		limits: { ...before, steps: 30, tokens: 900 },
		temperature: 0.5,
	})
	t.strictSame((await update('limits.steps=')).json().config.limits, { cost_per_day: 1.5, tokens: 900 }, 'removed')
	t.strictSame((await update('limits.steps=', 'temperature=')).json().config, {
		limits: { cost_per_day: 1.5, tokens: 900 },
	})
})

void t.test('setting a map replaces it before the keys that follow are set', async (t) => {
	t.strictSame((await update('limits={"steps": 4}')).json().config, { limits: { steps: 4 } })
	t.strictSame((await update('limits={"steps": 5}', 'limits.tokens=7')).json().config, {
		limits: { steps: 5, tokens: 7 },
	})
	t.strictSame((await update('context.facts=false')).json().config, {
		limits: { steps: 5, tokens: 7 },
		context: { facts: false },
	})
	t.strictSame((await update('limits=')).json().config, { context: { facts: false } })
})

void t.test('an unknown agent is an error', async (t) => {
	const { code, stderr } = await svc(['agents', 'update', 'bob', '--set', 'limits.steps=4'])
	t.equal(code, 4)
	t.match(stderr, 'there is no agent "bob"')
})
