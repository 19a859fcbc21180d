import type { Test } from 'tap'

const ATTEMPTS = 10

interface Comparison {
	work: () => unknown
	/** The work to which `work` is compared. */
	reference: () => unknown
	/** `work` may cost this many times the reference. */
	times: number
	/** Minimum for the reference's time in milliseconds, since short times are mostly noise. Default 0. */
	floor?: number
}

/**
 * Asserts that `work` costs at most `times` as much CPU time of this process as `reference`. Garbage collection and compilation can
 * only increase a measurement, so both are repeated until their minima fit, at most ten times.
 */
export async function assertCpuTime(
	t: Test,
	what: string,
	{ work, reference, times, floor = 0 }: Comparison,
): Promise<void> {
	let [workMs, referenceMs] = [Infinity, Infinity]
	for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
		referenceMs = Math.min(referenceMs, await cpuMs(reference))
		workMs = Math.min(workMs, await cpuMs(work))
		if (workMs <= times * Math.max(referenceMs, floor)) break
	}
	const message = `${what}: ${workMs.toFixed(1)} ms, reference ${referenceMs.toFixed(1)} ms`
	t.ok(workMs <= times * Math.max(referenceMs, floor), message)
}

async function cpuMs(work: () => unknown): Promise<number> {
	const from = process.cpuUsage()
	await work()
	const { user, system } = process.cpuUsage(from)
	return (user + system) / 1000
}
