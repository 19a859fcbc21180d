/** A killed gateway leaves processes of its servers behind; the next gateway ends these and no others. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Logger } from '../../../core/log/log.ts'
import { markOf } from '../../../plugins/mcp/process-table.ts'
import { reap } from '../../../plugins/mcp/reap.ts'
import { makeHome, send } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { gone, isRunning, servers, stdio } from '../../support/mcp.ts'
import { spawnGateway } from '../../support/process.ts'
import { eventually } from '../../support/wait.ts'

const call = async (url: string, method: string, path: string, body?: object): Promise<Answer> =>
	(await send(url + path, method, body ? { body } : {})).body
/** Waits until a run has one of these statuses. */
const reached = (url: string, run_id: string, ...statuses: string[]): Promise<Answer> =>
	eventually<Answer>(
		() => call(url, 'GET', `/v1/runs/${run_id}`),
		({ status }) => statuses.includes(status),
	)

void t.test('a second signal to a stopping gateway kills the process groups of its MCP servers', async (t) => {
	const home = makeHome({}, t)
	const gateway = await spawnGateway(home, { SVC_LOG_LEVEL: 'info' })
	t.teardown(() => gateway.kill())
	await call(gateway.url, 'POST', '/v1/agents', { name: 'ada' })
	const { id } = await call(gateway.url, 'POST', '/v1/agents/ada/mcp', stdio('own', servers.fixture))
	const { pid } = await call(gateway.url, 'GET', `/v1/agents/ada/mcp/${id}`)
	const start = (tool: string): Promise<Answer> =>
		call(gateway.url, 'POST', '/v1/agents/ada/runs', { prompt: `/tool mcp__own__${tool} {}`, conversation: tool })
	const started = await start('children')
	const { answer } = await reached(gateway.url, started.run_id, 'completed')
	const [inGroup, outside] = (/\[(\d+),(\d+)\]/.exec(answer)?.slice(1) ?? []).map(Number) as [number, number]
	t.teardown(() => process.kill(outside, 'SIGKILL'))
	const { run_id } = await start('hang') // delays the shutdown
	await reached(gateway.url, run_id, 'started')
	const ended = eventually(
		() => {
			gateway.child.kill('SIGINT')
			return gateway.child.exitCode
		},
		(code) => code !== null,
	)
	t.equal(await ended, 1)
	t.strictSame(await gone([pid, inGroup]), [])
})

void t.test('a gateway ends the servers that its killed predecessor left behind', async (t) => {
	const home = makeHome({}, t)
	const first = await spawnGateway(home)
	t.teardown(() => first.kill())
	const pids: number[] = []
	await call(first.url, 'POST', '/v1/agents', { name: 'ada' })
	for (const name of ['one', 'two']) {
		const { id } = await call(first.url, 'POST', '/v1/agents/ada/mcp', stdio(name, servers.fixture))
		pids.push((await call(first.url, 'GET', `/v1/agents/ada/mcp/${id}`)).pid)
		// A program can ignore that its input ended with the gateway; its children ignore everything.
		for (const tool of ['children', 'deaf']) {
			const { run_id } = await call(first.url, 'POST', '/v1/agents/ada/runs', {
				prompt: `/tool mcp__${name}__${tool} {}`,
			})
			const run = await reached(first.url, run_id, 'completed', 'failed')
			t.equal(run.status, 'completed')
			pids.push(...(/\[(\d+),(\d+)\]/.exec(run.answer)?.slice(1) ?? []).map(Number))
		}
	}
	t.equal(pids.length, 6)
	// The leader of the last group dies while no gateway runs: its children are found by their mark.
	await first.kill()
	process.kill(pids[3] as number, 'SIGKILL')
	t.strictSame(await gone([pids[3] as number]), [])
	t.ok(pids.every((pid, at) => at === 3 || isRunning(pid)))

	// These only look like leftovers: the pid of one belongs to another process now, the other is truncated.
	const bystander = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1e6)'], { stdio: 'ignore', detached: true })
	await once(bystander, 'spawn')
	t.teardown(() => bystander.kill('SIGKILL'))
	const record = { pid: bystander.pid, started: '1', boot: 'another' }
	writeFileSync(join(home, 'run/mcp', `${'0'.repeat(32)}.json`), JSON.stringify(record))
	writeFileSync(join(home, 'run/mcp', `${'1'.repeat(32)}.json`), '{"pid":')

	const second = await spawnGateway(home)
	t.teardown(() => second.kill())
	t.strictSame(await gone(pids), [])
	t.ok(isRunning(bystander.pid as number))
	const [server] = await call(second.url, 'GET', '/v1/agents/ada/mcp')
	t.match(server, { name: 'one', status: /^connect/ })
	await second.end()
	t.strictSame(readdirSync(join(home, 'run')).includes('mcp') ? readdirSync(join(home, 'run/mcp')) : [], [])
})

const skip = process.platform === 'linux' ? false : 'there is no /proc'
void t.test(
	'a server that has ended but is still in the process table is not reported as a leftover',
	{ skip },
	async (t) => {
		const folder = t.testdir({})
		// The parent becomes another program, which never collects its children.
		const parent = spawn('sh', ['-c', 'tail -f /dev/null & echo $!; exec tail -f /dev/null'], {
			stdio: ['ignore', 'pipe', 'ignore'],
		})
		t.teardown(() => parent.kill('SIGKILL'))
		const [line] = (await once(parent.stdout, 'data')) as [Buffer]
		const pid = Number(line.toString())
		const mark = await eventually(() => markOf(pid))
		writeFileSync(join(folder, `${'2'.repeat(32)}.json`), JSON.stringify(mark))
		await eventually(() => readFileSync(`/proc/${parent.pid}/comm`, 'utf8') === 'tail\n')
		process.kill(pid, 'SIGKILL')
		await eventually(() => / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')))
		const warnings: unknown[] = []
		await reap(folder, { warn: (...line: unknown[]) => warnings.push(line) } as unknown as Logger)
		t.strictSame(warnings, [])
		t.strictSame(readdirSync(folder), [])
	},
)
