/**
 * Plugins switched on and off, settings changed, a plugin's code edited and broken, under constant requests and an open
 * event stream: no request fails, no event is lost.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { openStream } from '../support/sse.ts'
import { eventually } from '../support/wait.ts'

const ROUNDS = Number(process.env.SVC_TEST_RELOADS ?? 5)
const CLIENTS = 4
/** Between the rounds of a client. Without it, the requests would use a complete core, which the reloads need. */
const PAUSE_MS = 20

const yaml = (clock: string, limit: number): string => `runs:\n  max_waiting: ${limit}\nplugins:\n  clock: ${clock}\n`
const code = (answer: string): string => `
import { word } from './word.ts'
export default {
	name: 'clock',
	needs: ['auth'],
	config: (joi) => joi.object({ zone: joi.string().default('utc') }),
	start: (ctx) => ctx.primitive({ name: 'clock.now', description: 'time', run: () => word }),
	http: (server, ctx) => server.route({ method: 'GET', path: '/v1/clock', handler: () => ({ answer: '${answer}', word, zone: ctx.config.zone }) }),
}
`

void t.test(`${ROUNDS} rounds of changes under load`, async (t) => {
	const gateway = await startGateway({
		config: yaml('true', 100),
		files: { 'plugins/clock/index.ts': code('0'), 'plugins/clock/word.ts': "export const word: string = 'zero'\n" },
	})
	t.teardown(() => gateway.stop())
	const { home } = gateway
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())

	let finished = false
	t.teardown(() => {
		finished = true
	})
	const failures: string[] = []
	const runIds: string[] = []
	let requests = 0
	const client = async (number: number): Promise<void> => {
		for (let round = 0; !finished; round++) {
			const name = `a${number}-${round}`
			for (const [method, path, body, wanted] of [
				['POST', '/v1/agents', { name }, 201],
				['GET', `/v1/agents/${name}`, undefined, 200],
				['POST', `/v1/agents/${name}/runs`, { prompt: 'hello' }, 200],
				['GET', '/v1/plugins', undefined, 200],
			] as const) {
				const reply = await gateway
					.request(method, path, body ? { body } : {})
					.catch((error: unknown) => ({ status: 0, body: String(error) }))
				requests++
				if (reply.status !== wanted) failures.push(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
				else if (path.endsWith('/runs')) runIds.push((reply.body as { run_id: string }).run_id)
			}
			await pause(PAUSE_MS)
		}
	}
	const load = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))

	for (let round = 1; round <= ROUNDS; round++) {
		switch (round % 5) {
			case 0:
				write(home, 'config/gateway.yaml', yaml('true', 100))
				await applied(gateway, (status, body) => status === 200 && body.zone === 'utc')
				break
			case 1:
				write(home, 'plugins/clock/word.ts', `export const word: string = 'word ${round}'\n`)
				await applied(gateway, (status, body) => body.word === `word ${round}`)
				break
			case 2: {
				const refused = stream.waitFor(
					(event) => event.event_type === 'plugin.failed' && String(event.payload.message).includes(`round ${round}`),
				)
				write(
					home,
					'plugins/clock/word.ts',
					`export const word: string = ''\nthrow new Error('broken in round ${round}')\n`,
				)
				await refused
				t.match(
					(await gateway.request('GET', '/v1/clock')).body,
					{ word: `word ${round - 1}` },
					'the previous code still runs',
				)
				write(home, 'plugins/clock/word.ts', `export const word: string = 'fixed ${round}'\n`)
				await applied(gateway, (status, body) => body.word === `fixed ${round}`)
				break
			}
			case 3:
				write(home, 'config/gateway.yaml', yaml('{zone: cet}', 101))
				await applied(gateway, (status, body) => body.zone === 'cet')
				break
			case 4:
				write(home, 'config/gateway.yaml', yaml('false', 100))
				await applied(gateway, (status) => status === 404)
				break
		}
	}
	finished = true
	await load
	t.comment(`${requests} requests, ${runIds.length} runs, generation ${gateway.running.gateway.status.generation()}`)
	t.strictSame(failures.slice(0, 5), [], 'no request failed')
	t.ok(requests > ROUNDS * CLIENTS)

	// The stream, which was opened before the first change, has every run from beginning to end.
	const ends = new Set(['run.completed', 'run.failed', 'run.stopped'])
	for (const run of runIds) await stream.waitFor((event) => event.run_id === run && ends.has(event.event_type))
	const typesOf = Map.groupBy(stream.events, (event) => event.run_id)
	const wrong = runIds.flatMap((run) => {
		const types = (typesOf.get(run) ?? []).map((event) => event.event_type)
		const startAndEnd = types.filter((type) => type === 'run.started' || ends.has(type))
		return types[0] === 'run.started' && startAndEnd.join() === 'run.started,run.completed' ? [] : [{ run, types }]
	})
	t.strictSame(wrong.slice(0, 5), [], 'the first event of every run is its only start, and it completes once')
	t.equal(new Set(runIds).size, runIds.length)
})

void t.test('an invalid gateway.yaml is refused with line and column', async (t) => {
	const gateway = await startGateway({ config: 'runs:\n  max_waiting: 7\n' })
	t.teardown(() => gateway.stop())
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const rejected = stream.waitFor('config.rejected')
	write(gateway.home, 'config/gateway.yaml', 'runs:\n  max_waitng: 7\n')
	t.match((await rejected).payload.message, /gateway\.yaml:2:3: .*max_waitng.*max_waiting/s)
	t.match((await gateway.request('GET', '/readyz?verbose')).body, /max_waitng/)
	t.equal((await gateway.request('GET', '/v1/agents')).status, 200)
	const reloaded = stream.waitFor('config.reloaded')
	write(gateway.home, 'config/gateway.yaml', 'runs:\n  max_waiting: 8\n')
	await reloaded
	t.notMatch((await gateway.request('GET', '/readyz?verbose')).body, /max_waitng/)
})

void t.test('a gateway.yaml that is removed or emptied does not switch off authentication', async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => gateway.stop())
	const { token } = await addToken(gateway, ['*'])
	const stream = await openStream(gateway.url, { token })
	t.teardown(() => stream.close())
	for (const change of [
		() => rmSync(join(gateway.home, 'config/gateway.yaml')),
		() => write(gateway.home, 'config/gateway.yaml', ''),
	]) {
		const rejected = stream.waitFor(
			'config.rejected',
			stream.events.filter((one) => one.event_type === 'config.rejected').length + 1,
		)
		change()
		t.match((await rejected).payload.message, /is (missing|empty); write/)
		t.equal((await gateway.request('GET', '/v1/agents')).status, 401)
	}
})

function write(home: string, path: string, text: string): void {
	writeFileSync(join(home, path), text)
}

/** Waits until the route of the plugin shows that a change is applied. */
async function applied(
	{ request, running }: TestGateway,
	holds: (status: number, body: Record<string, unknown>) => boolean,
): Promise<void> {
	const look = async () => {
		const { status, body } = await request('GET', '/v1/clock')
		return { status, body, configError: running.gateway.status.configError() }
	}
	await eventually(look, ({ status, body }) => holds(status, body))
}
