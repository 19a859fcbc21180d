import type { Test } from 'tap'

const ATTEMPTS = 10

interface Costs {
	work: () => unknown
	/** What `work` is compared with. */
	reference: () => unknown
	/** `work` may cost this many times the reference. */
	times: number
	/** Milliseconds that the reference counts for at least, since short times are mostly noise. Default 0. */
	floor?: number
}

/**
 * Asserts that one piece of work costs at most so many times another, in CPU time of this process. Garbage collection and
 * compilation only ever add to a measurement, so both are measured until the cheapest ones fit, ten times at most.
 */
export async function costs(t: Test, what: string, { work, reference, times, floor = 0 }: Costs): Promise<void> {
	let [took, usual] = [Infinity, Infinity]
	for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
		usual = Math.min(usual, await cpuMs(reference))
		took = Math.min(took, await cpuMs(work))
		if (took <= times * Math.max(usual, floor)) break
	}
	t.ok(took <= times * Math.max(usual, floor), `${what}: ${took.toFixed(1)} ms, beside ${usual.toFixed(1)} ms`)
}

async function cpuMs(work: () => unknown): Promise<number> {
	const from = process.cpuUsage()
	await work()
	const { user, system } = process.cpuUsage(from)
	return (user + system) / 1000
}
