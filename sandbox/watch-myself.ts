/** The limits that a host keeps by itself, from the thread beside the program's. The main thread watches as well. */
import { overLimit } from './host-protocol.ts'
import type { HostSettings, ProgramOutcome } from './host-protocol.ts'

const EVERY_MS = 10

/** `exceeded` is called once. All threads of the process count, and so does what V8 does for the program. */
export function watchMyself(settings: HostSettings, exceeded: (outcome: ProgramOutcome) => void): Disposable {
	const before = process.cpuUsage()
	const timer = setInterval(() => {
		const { user, system } = process.cpuUsage(before)
		const outcome = overLimit(settings, { bytes: process.memoryUsage.rss(), cpu_ms: (user + system) / 1000 })
		if (!outcome) return
		clearInterval(timer)
		exceeded(outcome)
	}, EVERY_MS)
	return { [Symbol.dispose]: () => clearInterval(timer) }
}
