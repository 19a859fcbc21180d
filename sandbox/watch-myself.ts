/** The limits that a host keeps by itself, from the thread beside the program's. The main thread watches as well. */
import type { HostSettings, ProgramOutcome } from './host-protocol.ts'

const EVERY_MS = 10

/** `exceeded` is called once. All threads of the process count, and so does what V8 does for the program. */
export function watchMyself(settings: HostSettings, exceeded: (outcome: ProgramOutcome) => void): Disposable {
	const before = process.cpuUsage()
	const stop = (code: 'sandbox_timeout' | 'sandbox_memory', message: string): void => {
		clearInterval(timer)
		exceeded({ ok: false, code, message })
	}
	const timer = setInterval(() => {
		const { user, system } = process.cpuUsage(before)
		if ((user + system) / 1000 > settings.cpu_ms) {
			stop('sandbox_timeout', `it computed for more than ${settings.cpu_ms / 1000} s (skills.cpu_s)`)
		} else if (process.memoryUsage.rss() > settings.process_mib * 1024 * 1024) {
			stop('sandbox_memory', `its process needs more than ${settings.process_mib} MiB of memory (skills.process_mib)`)
		}
	}, EVERY_MS)
	return { [Symbol.dispose]: () => clearInterval(timer) }
}
