/** Shares of agents in the skill hosts, with real processes. */
import t from 'tap'
import type { Test } from 'tap'
import { openLog } from '../../core/log/log.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import type { HostOptions, ProgramHosts } from '../../plugins/skills/hosts.ts'
import { eventually } from '../support/wait.ts'

const log = openLog({ level: 'silent', format: 'json' })
const usual = {
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
	/** `id` is in `began` once the program runs. */
	call(owner: string, id: string, code: string): { settled: Promise<unknown>; stop: () => void }
	began: string[]
	isOver(id: string): boolean
}

function open(t: Test, settings: Partial<HostOptions['settings']> = {}): Calls {
	const hosts = openHosts({ settings: { ...usual, ...settings }, log })
	t.teardown(() => hosts[Symbol.asyncDispose]())
	const began: string[] = []
	const over = new Set<string>()
	return {
		hosts,
		began,
		isOver: (id) => over.has(id),
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
				logged: () => void began.push(id),
			})
			const settled = run.finally(() => over.add(id))
			settled.catch(() => {})
			return { settled, stop: () => controller.abort(new Error('enough')) }
		},
	}
}

const sleep = 'await new Promise((resolve) => setTimeout(resolve, 50_000))'
const spin = 'for (;;);'

void t.test('an agent whose calls sleep holds up no other, and none gets all processes', async (t) => {
	const { call, began, isOver } = open(t)
	const sleeping = Array.from({ length: 6 }, (_, n) => call('a', `a${n}`, sleep))
	await eventually(() => began.length === 4)
	t.equal(await call('b', 'b', 'return 1').settled, 1)
	t.equal(await call('c', 'c', 'return 2').settled, 2)
	t.equal(began.filter((id) => id.startsWith('a')).length, 4, 'half of all processes')
	t.notOk(
		sleeping.some((_, n) => isOver(`a${n}`)),
		'all of them still sleep or wait',
	)
	const last = call('a', 'a6', sleep)
	last.stop() // while it waits
	await t.rejects(last.settled, { message: 'enough' })
	sleeping[0]?.stop()
	await eventually(() => began.includes('a4'))
})

void t.test('an agent whose calls compute without an end holds up no other', async (t) => {
	const { call, began, isOver } = open(t)
	const spinning = Array.from({ length: 6 }, (_, n) => call('a', `a${n}`, spin))
	await eventually(() => began.length === 2)
	const others = ['b', 'c', 'd'].map((owner) => call(owner, owner, 'return 1').settled)
	t.strictSame(await Promise.all(others), [1, 1, 1])
	t.strictSame(
		// In two processes: either may be the first that says so.
		began.filter((id) => id.startsWith('a')).toSorted(),
		['a0', 'a1'],
		'as many as compute at the same time',
	)
	t.notOk(isOver('a0') || isOver('a1'))
	for (const one of spinning) one.stop()
	await Promise.allSettled(spinning.map(({ settled }) => settled))
})

void t.test(
	'an agent that calls now and then keeps its place beside one whose calls compute without an end',
	async (t) => {
		const { call, began } = open(t)
		t.equal(await call('b', 'b', 'return 1').settled, 1)
		const spinning = Array.from({ length: 3 }, (_, n) => call('a', `a${n}`, spin))
		for (let n = 0; n < 5; n++) t.equal(await call('b', 'b', `return ${n}`).settled, n)
		await eventually(() => began.includes('a0'))
		t.equal(await call('b', 'b', 'return 5').settled, 5)
		t.notOk(began.includes('a1'))
		await eventually(() => began.includes('a1')) // a second after the last call of b
		for (const one of spinning) one.stop()
		await Promise.allSettled(spinning.map(({ settled }) => settled))
	},
)

void t.test('a program that wakes counts as one that computes again', async (t) => {
	const { call, began, isOver } = open(t, { processes: 1, waiting_processes: 3 })
	const wakes = call('a', 'wakes', `await new Promise((resolve) => setTimeout(resolve, 1)); svc.log('woke'); ${spin}`)
	await eventually(() => began.length === 2)
	const next = call('a', 'next', 'return 1')
	t.equal(await call('b', 'b', 'return 2').settled, 2)
	t.notOk(began.includes('next') || isOver('next'), 'it waits for its turn')
	wakes.stop()
	t.equal(await next.settled, 1)
})

void t.test('agents take turns, and none gets all places of those that wait', async (t) => {
	const { call, began } = open(t, { processes: 1, waiting_processes: 0, max_waiting: 3 })
	const first = call('a', 'first', spin)
	await eventually(() => began.length === 1)
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
	t.strictSame(began, ['first', 'a1', 'b1', 'a2', 'a3'])
})

void t.test('callers that wait when the hosts close are told', async (t) => {
	const { hosts, call, began } = open(t, { processes: 1, waiting_processes: 0 })
	const held = call('a', 'held', sleep)
	await eventually(() => began.length === 1)
	const waits = call('b', 'waits', 'return 1')
	await Promise.all([
		t.rejects(waits.settled, { code: 'unavailable' }),
		t.rejects(held.settled, { code: 'sandbox_crash' }),
		hosts[Symbol.asyncDispose](),
	])
})
