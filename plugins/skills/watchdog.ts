/**
 * Enforces the limits of a call from the main thread, outside the process: wall time on every system, and memory and CPU time if
 * the kernel reports them (Linux). A host also checks itself, more often. This is for hosts that cannot.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { overLimit } from '../../sandbox/host-protocol.ts'
import type { HostSettings, ProgramOutcome } from '../../sandbox/host-protocol.ts'

const EVERY_MS = 25
/** A clock tick of /proc/<pid>/stat: USER_HZ, which is 100 on every Linux that Node runs on. */
const TICK_MS = 10
const PAGE_BYTES = 4096
/** Factor for the CPU time, so that the host's own check applies first. */
const CPU_GRACE = 1.5

/** `setting`: the name of the setting for this limit, for the error message. */
export interface WallTime {
	s: number
	setting?: string
}

/** Watches the process `pid` until it is disposed. Calls `exceeded` at most once. */
export function watch(
	pid: number,
	settings: HostSettings & { wall: WallTime },
	exceeded: (outcome: ProgramOutcome) => void,
): Disposable {
	const { s: wall_s, setting } = settings.wall
	const file = openStat(pid)
	const began = file === undefined ? 0 : (readStat(file)?.cpu_ms ?? 0)
	const stop = (outcome: ProgramOutcome): void => {
		end()
		exceeded(outcome)
	}
	const wall = setTimeout(() => {
		const message = `it took longer than ${wall_s} s${setting === undefined ? '' : ` (${setting})`}`
		stop({ ok: false, code: 'sandbox_timeout', message })
	}, wall_s * 1000)
	const check = (): void => {
		const used = file === undefined ? undefined : readStat(file)
		if (!used) return
		const outcome = overLimit(settings, { ...used, cpu_ms: (used.cpu_ms - began - TICK_MS) / CPU_GRACE })
		if (outcome) stop(outcome)
	}
	// Not one of the plugin's timers: a call that outlives its instance keeps its limits.
	const regular = file === undefined ? undefined : setInterval(check, EVERY_MS)
	let ended = false
	function end(): void {
		if (ended) return
		ended = true
		clearTimeout(wall)
		clearInterval(regular)
		if (file !== undefined) closeSync(file)
	}
	return { [Symbol.dispose]: end }
}

function openStat(pid: number): number | undefined {
	try {
		return openSync(`/proc/${pid}/stat`, 'r')
	} catch {
		return undefined // not Linux, or the process has ended
	}
}

const buffer = Buffer.alloc(1024)

function readStat(file: number): { bytes: number; cpu_ms: number } | undefined {
	try {
		const stat = buffer.toString('latin1', 0, readSync(file, buffer, 0, buffer.length, 0))
		// Field 2, the program's name, is in parentheses and may contain spaces; 14, 15 and 24 are user time, system time and pages.
		const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
		return { bytes: Number(fields[21]) * PAGE_BYTES, cpu_ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS }
	} catch {
		return undefined // the process has ended, which is reported elsewhere
	}
}
