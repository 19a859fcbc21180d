import { join } from 'node:path'
import t from 'tap'
import { inEnvelope } from '../../../core/events/envelope.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** A third-party plugin with a route that removes old events at once. */
const broom = `
export default {
	name: 'broom',
	needs: ['auth', 'events'],
	http(server, ctx) {
		server.route({ method: 'POST', path: '/prune', handler: async () => ({ gone: await ctx.use('events').prune() }) })
	},
}
`

async function audit(gateway: TestGateway, query: string): Promise<EventEnvelope[]> {
	const { status, body } = await gateway.request('GET', `/v1/audit?limit=500&${query}`)
	if (status !== 200) throw new Error(`no audit: ${status}`)
	return body.events
}

void t.test('events older than the retention are removed soon after a start, newer ones are kept', async (t) => {
	const home = makeHome({ config: 'events:\n  retention_days: 2\n' }, t)
	const engine = await openLmdb({ path: join(home, 'data') })
	for (const days of [400, 3, 2.1, 1.9, 0.1]) {
		const event = inEnvelope({ event_type: 'agent.updated', payload: { days } }, 'ada', null, 0)
		const timestamp = new Date(Date.now() - days * DAY_MS).toISOString()
		await engine.log.append(null, 0, [{ event: { ...event, timestamp } }])
	}
	await engine[Symbol.asyncDispose]()

	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	const left = await eventually(
		async () => (await audit(gateway, 'agent_id=ada')).map((event) => event.payload.days),
		({ length }) => length <= 2,
	)
	t.strictSame(left, [0.1, 1.9])
})

void t.test('the events of a run that has not ended are kept at any age', async (t) => {
	const gateway = await startGateway({
		config: 'plugins:\n  broom: true\n',
		files: { 'plugins/broom/index.js': broom },
	})
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const run = async (prompt: string): Promise<string> =>
		(await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt } })).body.run_id
	const ended = await run('hello')
	await stream.waitFor((event) => event.run_id === ended && event.event_type === 'run.completed')
	const paused = await run('/tool ask {"question": "Which one?"}')
	const question = await stream.waitFor('question.asked')
	await stream.waitFor('run.paused')
	const journal = await audit(gateway, `run_id=${paused}`)
	t.ok((await audit(gateway, `run_id=${ended}`)).length > 3)

	t.equal((await gateway.request('POST', '/prune')).body.gone, 0, 'nothing is old yet')
	const { now } = Date
	t.teardown(() => (Date.now = now))
	Date.now = () => now() + 31 * DAY_MS
	const { gone } = (await gateway.request('POST', '/prune')).body
	Date.now = now
	t.ok(gone > 3)
	t.strictSame(await audit(gateway, `run_id=${ended}`), [])
	t.strictSame(await audit(gateway, `run_id=${paused}`), journal)

	const path = `/v1/agents/ada/ask-responses/${String(question.payload.question_id)}`
	t.equal((await gateway.request('POST', path, { body: { answer: 'this one' } })).status, 200)
	await stream.waitFor((event) => event.run_id === paused && event.event_type === 'run.completed')
})
