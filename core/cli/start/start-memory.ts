import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Time between two checks of whether the process is idle. */
const PAUSE_MS = 1_000
/** The process is idle if it is busy for at most this share of that time. */
const IDLE = 0.1

/**
 * Releases memory that only the start needed: some 25 MiB, which V8 would keep. Waits for a second without much work, then
 * collects garbage once, which takes about 50 ms. The limit for young objects stays the same.
 */
export function releaseStartMemory(): void {
	let before = performance.eventLoopUtilization()
	const timer = setInterval(() => {
		const { utilization } = performance.eventLoopUtilization(before)
		before = performance.eventLoopUtilization()
		if (utilization > IDLE) return
		clearInterval(timer)
		// Node exposes the function only under this flag.
		setFlagsFromString('--expose-gc')
		const collect = runInNewContext('gc') as NodeJS.GCFunction
		setFlagsFromString('--no-expose-gc')
		// `last-resort` returns free memory to the system, which a normal collection postpones.
		collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
	}, PAUSE_MS).unref()
}
