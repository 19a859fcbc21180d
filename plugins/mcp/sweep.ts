/** Kills processes that have left the process group of their server, as browsers do. They are found by their mark. */
import { setTimeout as pause } from 'node:timers/promises'
import { findMarked, signal } from './process-table.ts'

/** More than one, since these processes may start others during the search. */
const SWEEPS = 3
const PAUSE_MS = 20

/** Kills every process that has one of the marks. */
export async function sweep(marks: { has(mark: string): boolean }): Promise<void> {
	for (let round = 0; round < SWEEPS; round++) {
		const found = (await findMarked()).filter((one) => marks.has(one.mark))
		if (found.length === 0) return
		for (const { pid } of found) signal(pid, 'SIGKILL')
		await pause(PAUSE_MS)
	}
}

/** The same for many callers: one scan of the machine's processes serves all calls that were made before it started. */
export function sharedSweep(): (mark: string) => Promise<void> {
	let waiting = new Set<string>()
	let next: Promise<void> | undefined
	let current: Promise<void> = Promise.resolve()
	return (mark) => {
		waiting.add(mark)
		return (next ??= current.then(() => {
			const marks = waiting
			waiting = new Set()
			next = undefined
			return (current = sweep(marks))
		}))
	}
}
