import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Between two looks at whether the process is idle. */
const PAUSE_MS = 1_000
/** Of the time between two looks. */
const IDLE = 0.1

/**
 * Gives memory back that only the start needed: some 25 MiB, which V8 would keep. Waits for a second without much work, then
 * collects garbage once, which takes about 50 ms. The room that young objects may take while there is much to do stays.
 */
export function releaseStartMemory(): void {
	let before = performance.eventLoopUtilization()
	const timer = setInterval(() => {
		const { utilization } = performance.eventLoopUtilization(before)
		before = performance.eventLoopUtilization()
		if (utilization > IDLE) return
		clearInterval(timer)
		// Node exposes the function under this flag only.
		setFlagsFromString('--expose-gc')
		const collect = runInNewContext('gc') as NodeJS.GCFunction
		setFlagsFromString('--no-expose-gc')
		// `last-resort` returns what is free to the system, which a usual collection leaves for later.
		collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
	}, PAUSE_MS).unref()
}
