/**
 * How one agent's flood affects another agent's skill calls, each with a name lookup: alone, while the other agent keeps many computing
 * calls in progress, and while it keeps many computing calls, sleeping calls and lookups in progress.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { systemLookup } from '../../core/fetch/system-lookup.ts'
import { openLog } from '../../core/log/log.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import type { ProgramHosts } from '../../plugins/skills/hosts.ts'
import type { Effort } from './effort.ts'
import { quantile } from './statistics.ts'
import type { Figure } from './table.ts'

/** A skill that computes for some milliseconds. */
const computes = `export default async () => {
	let sum = 0
	for (let n = 0; n < 5e5; n++) sum = (sum + n * n) % 1000003
	return sum
}`
const sleeps = 'export default () => new Promise((resolve) => setTimeout(resolve, 2000))'
/** The defaults of gateway.yaml. */
const settings = {
	processes: 2,
	waiting_processes: 6,
	max_waiting: 100,
	memory_mib: 64,
	process_mib: 256,
	cpu_s: 5,
	wall_time_s: 60,
}
const IN_FLIGHT = 16
const PAUSE_MS = 20

type Act = (hosts: ProgramHosts, signal: AbortSignal) => Promise<unknown>

const compute: Act = (hosts, signal) => call(hosts, 'other', computes, signal)
const sleep: Act = (hosts, signal) => call(hosts, 'other', sleeps, signal)
const lookUp: Act = () => systemLookup('localhost', 'other')

export async function shares({ single }: Effort): Promise<Figure[]> {
	await using hosts = openHosts({ settings, log: openLog({ level: 'error', format: 'json' }) })
	const calls = Math.max(40, single / 2)
	await measure(hosts, 10)
	const alone = quantile(await measure(hosts, calls), 0.95)
	const beside = async (acts: Act[]): Promise<number> => {
		const flood = startFlood(hosts, acts)
		await measure(hosts, 10)
		const times = await measure(hosts, calls)
		await flood.end()
		return quantile(times, 0.95)
	}
	const figure = (flood: string, ours: number): Figure => ({
		metric: `skill call and lookup beside another agent's flood of ${flood}, p95`,
		unit: 'ms',
		ours,
		bare: alone,
		goal: { of: 'ratio', most: 2 },
	})
	return [
		figure('computing calls', await beside([compute])),
		figure('all kinds', await beside([compute, sleep, lookUp])),
	]
}

async function measure(hosts: ProgramHosts, count: number): Promise<number[]> {
	const times: number[] = []
	for (let n = 0; n < count; n++) {
		await pause(PAUSE_MS)
		const began = performance.now()
		await systemLookup('localhost', 'one')
		await call(hosts, 'one', computes, new AbortController().signal)
		times.push(performance.now() - began)
	}
	return times
}

function startFlood(hosts: ProgramHosts, acts: Act[]): { end(): Promise<void> } {
	const controller = new AbortController()
	const { signal } = controller
	const repeat = async (act: Act): Promise<void> => {
		while (!signal.aborted) await act(hosts, signal).catch(() => {})
	}
	const loops = Array.from({ length: IN_FLIGHT }, () => acts.map(repeat)).flat()
	return {
		async end() {
			controller.abort(new Error('enough'))
			await Promise.all(loops)
		},
	}
}

function call(hosts: ProgramHosts, owner: string, code: string, signal: AbortSignal): Promise<unknown> {
	return hosts.run({
		owner,
		program: { code, language: 'javascript' },
		args: {},
		signal,
		called: () => Promise.reject(new Error('no call is expected')),
		logged: () => {},
	})
}
