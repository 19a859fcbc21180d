/** Shares of agents in the skill hosts, with real processes. */
import t from 'tap'
import type { Test } from 'tap'
import { openLog } from '../../core/log/log.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import type { HostOptions, ProgramHosts } from '../../plugins/skills/hosts.ts'
import { eventually } from '../support/wait.ts'

const log = openLog({ level: 'silent', format: 'json' })
const defaults = {
	processes: 2,
	waiting_processes: 6,
	max_waiting: 100,
	memory_mib: 32,
	process_mib: 256,
	cpu_s: 20,
	wall_time_s: 60,
}

interface Calls {
	hosts: ProgramHosts
	/** `started` contains `id` once the program runs. */
	call(owner: string, id: string, code: string): { settled: Promise<unknown>; stop: () => void }
	started: string[]
	isSettled(id: string): boolean
}

function open(t: Test, settings: Partial<HostOptions['settings']> = {}): Calls {
	const hosts = openHosts({ settings: { ...defaults, ...settings }, log })
	t.teardown(() => hosts[Symbol.asyncDispose]())
	const started: string[] = []
	const ended = new Set<string>()
	return {
		hosts,
		started,
		isSettled: (id) => ended.has(id),
		call(owner, id, body) {
			const controller = new AbortController()
			const run = hosts.run({
				owner,
				program: {
					code: `export default async (args, svc) => { svc.log('begins'); ${body} }`,
					language: 'javascript',
				},
				args: {},
				signal: controller.signal,
				called: async () => null,
				logged: () => void started.push(id),
			})
			const settled = run.finally(() => ended.add(id))
			settled.catch(() => {})
			return { settled, stop: () => controller.abort(new Error('enough')) }
		},
	}
}

const sleep = 'await new Promise((resolve) => setTimeout(resolve, 50_000))'
const spin = 'for (;;);'

void t.test('an agent whose calls sleep delays no other, and gets at most half of the processes', async (t) => {
	const { call, started, isSettled } = open(t)
	const sleeping = Array.from({ length: 6 }, (_, n) => call('a', `a${n}`, sleep))
	await eventually(() => started.length === 4)
	t.equal(await call('b', 'b', 'return 1').settled, 1)
	t.equal(await call('c', 'c', 'return 2').settled, 2)
	t.equal(started.filter((id) => id.startsWith('a')).length, 4, 'half of the processes run its calls')
	t.notOk(
		sleeping.some((_, n) => isSettled(`a${n}`)),
		'all calls still sleep or wait',
	)
	const last = call('a', 'a6', sleep)
	last.stop() // while it waits
	await t.rejects(last.settled, { message: 'enough' })
	sleeping[0]?.stop()
	await eventually(() => started.includes('a4'))
})

void t.test('an agent whose calls compute forever delays no other', async (t) => {
	const { call, started, isSettled } = open(t)
	const spinning = Array.from({ length: 6 }, (_, n) => call('a', `a${n}`, spin))
	await eventually(() => started.length === 2)
	const others = ['b', 'c', 'd'].map((owner) => call(owner, owner, 'return 1').settled)
	t.strictSame(await Promise.all(others), [1, 1, 1])
	t.strictSame(
		// Two processes report their starts in any order.
		started.filter((id) => id.startsWith('a')).toSorted(),
		['a0', 'a1'],
		'at most `processes` calls compute at the same time',
	)
	t.notOk(isSettled('a0') || isSettled('a1'))
	for (const { stop } of spinning) stop()
	await Promise.allSettled(spinning.map(({ settled }) => settled))
})

void t.test('an agent with occasional calls keeps its process beside one whose calls compute forever', async (t) => {
	const { call, started } = open(t)
	t.equal(await call('b', 'b', 'return 1').settled, 1)
	const spinning = Array.from({ length: 3 }, (_, n) => call('a', `a${n}`, spin))
	for (let n = 0; n < 5; n++) t.equal(await call('b', 'b', `return ${n}`).settled, n)
	await eventually(() => started.includes('a0'))
	t.equal(await call('b', 'b', 'return 5').settled, 5)
	t.notOk(started.includes('a1'))
	await eventually(() => started.includes('a1')) // a second after the last call of b
	for (const { stop } of spinning) stop()
	await Promise.allSettled(spinning.map(({ settled }) => settled))
})

void t.test('a program that wakes up counts as computing again', async (t) => {
	const { call, started, isSettled } = open(t, { processes: 1, waiting_processes: 3 })
	const waking = call('a', 'waking', `await new Promise((resolve) => setTimeout(resolve, 1)); svc.log('woke'); ${spin}`)
	await eventually(() => started.length === 2)
	const next = call('a', 'next', 'return 1')
	t.equal(await call('b', 'b', 'return 2').settled, 2)
	t.notOk(started.includes('next') || isSettled('next'), 'the next call waits for its turn')
	waking.stop()
	t.equal(await next.settled, 1)
})

void t.test('agents take turns, and none takes all places in the queue', async (t) => {
	const { call, started } = open(t, { processes: 1, waiting_processes: 0, max_waiting: 3 })
	const first = call('a', 'first', spin)
	await eventually(() => started.length === 1)
	const waiting = ['a1', 'a2', 'a3'].map((id) => call('a', id, 'return 1').settled)
	await t.rejects(call('a', 'a4', 'return 1').settled, {
		code: 'sandbox_busy',
		message:
			"3 calls of this agent's skills are already waiting (3 in total); try again later, or raise skills.max_waiting or skills.processes",
	})
	waiting.push(call('b', 'b1', 'return 1').settled)
	await t.rejects(call('c', 'c1', 'return 1').settled, { code: 'sandbox_busy', message: /^0 calls .*4 in total/ })
	first.stop()
	await Promise.all(waiting)
	t.strictSame(started, ['first', 'a1', 'b1', 'a2', 'a3'])
})

void t.test('running and waiting calls fail when the hosts close', async (t) => {
	const { hosts, call, started } = open(t, { processes: 1, waiting_processes: 0 })
	const running = call('a', 'running', sleep)
	await eventually(() => started.length === 1)
	const waiting = call('b', 'waiting', 'return 1')
	await Promise.all([
		t.rejects(waiting.settled, { code: 'unavailable' }),
		t.rejects(running.settled, { code: 'sandbox_crash' }),
		hosts[Symbol.asyncDispose](),
	])
})
