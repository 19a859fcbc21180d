/**
 * One call of a skill's program through the pool of skill hosts, compared with bare isolated-vm in a child process and with a new Node
 * process. Calls follow each other immediately, and with pauses, as an agent makes them.
 */
import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { openLog } from '../../core/log/log.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import type { Effort } from './effort.ts'
import { startPeer } from './peer.ts'
import { median, quantile } from './statistics.ts'
import type { Figure } from './table.ts'

const code = 'export default async ({ city }) => ({ text: `It rains in ${city}.` })'
const args = { city: 'Köln' }
/** The defaults of gateway.yaml. */
const settings = {
	processes: 2,
	waiting_processes: 6,
	max_waiting: 10,
	memory_mib: 64,
	process_mib: 256,
	cpu_s: 5,
	wall_time_s: 60,
}
/** Longer than a host needs to prepare for the next program. */
const PAUSE_MS = 20
const STARTS = 10

export async function skillCall({ single }: Effort): Promise<Figure[]> {
	await using hosts = openHosts({ settings, log: openLog({ level: 'error', format: 'json' }) })
	await using bare = await startPeer(new URL('./peers/bare-isolate.ts', import.meta.url))
	const call = {
		owner: 'one',
		program: { code, language: 'javascript' as const },
		args,
		signal: new AbortController().signal,
		called: () => Promise.reject(new Error('no call is expected')),
		logged: () => {},
	}
	const ours = (): Promise<unknown> => hosts.run(call)
	const theirs = (): Promise<unknown> => bare.ask('call', { code, args })
	const process_ = (): Promise<unknown> =>
		promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script])

	const atOnce = await inTurns(single, 0, ours, theirs)
	const paced = await inTurns(single, PAUSE_MS, ours, theirs)
	const started: number[] = []
	for (let n = 0; n < STARTS; n++) started.push(await timed(process_))
	return [
		{
			metric: 'skill call, p50',
			unit: 'ms',
			ours: median(paced.ours),
			bare: median(paced.theirs),
			goal: { of: 'ratio', most: 1.5 },
		},
		{ metric: 'skill call, p99', unit: 'ms', ours: quantile(paced.ours, 0.99), bare: quantile(paced.theirs, 0.99) },
		{
			metric: 'skill calls back to back, p50',
			unit: 'ms',
			ours: median(atOnce.ours),
			bare: median(atOnce.theirs),
			goal: { of: 'ratio', most: 1.5 },
		},
		{ metric: 'skill call or a Node process for it', unit: 'ms', ours: median(paced.ours), bare: median(started) },
	]
}

const script = `const { default: run } = await import(${JSON.stringify(`data:text/javascript,${encodeURIComponent(code)}`)})
process.stdout.write(JSON.stringify(await run(${JSON.stringify(args)})))`

/** Alternates ten calls of each side, so that other load affects both. The first two rounds are a warm-up. */
async function inTurns(
	count: number,
	between_ms: number,
	ours: () => Promise<unknown>,
	theirs: () => Promise<unknown>,
): Promise<{ ours: number[]; theirs: number[] }> {
	const times = { ours: [] as number[], theirs: [] as number[] }
	for (let round = -2; round < count / 10; round++) {
		for (const [name, act] of [
			['ours', ours],
			['theirs', theirs],
		] as const) {
			for (let n = 0; n < 10; n++) {
				if (between_ms > 0) await pause(between_ms)
				const took = await timed(act)
				// The first of ten calls follows the other side's, so its process was idle, as after a pause.
				if (round >= 0 && (n > 0 || between_ms > 0)) times[name].push(took)
			}
		}
	}
	return times
}

async function timed(act: () => Promise<unknown>): Promise<number> {
	const began = performance.now()
	await act()
	return performance.now() - began
}
