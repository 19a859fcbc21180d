import { startChild } from '../child.ts'
import type { CheckContext } from './contract.ts'

/** From the child: what it loads next, and then the problem with it; null if it loads. */
export type LoadReport = { loading: string } | { loaded: string; problem: string | null }

interface Loading extends Pick<CheckContext, 'env' | 'signal'> {
	child: URL
	/** Before the names. */
	args: string[]
	/** For each of them, without the start of the process. */
	limit_ms?: number
	/** What to say of one that ended the process, or took too long. `how`: as of `Child.ended`. */
	problemOf(name: string, how: string, isLate: boolean): string
}

/**
 * Has a child process load things that may end it or never finish, one after another; after such a one, another process loads the
 * rest. Returns the problem of each, null if it has none. Those that were not reached before `signal` aborted are absent.
 */
export async function loadEach(
	names: readonly string[],
	{ child, args, limit_ms, problemOf, ...options }: Loading,
): Promise<Map<string, string | null>> {
	const results = new Map<string, string | null>()
	const { signal } = options
	for (let left = names; left.length > 0 && !signal.aborted; left = left.filter((name) => !results.has(name))) {
		let loading: string | undefined
		let isLate = false
		let timer: NodeJS.Timeout | undefined
		const { process, ended } = startChild<LoadReport>(child, [...args, ...left], options, (report) => {
			clearTimeout(timer)
			loading = 'loading' in report ? report.loading : undefined
			if ('problem' in report) results.set(report.loaded, report.problem)
			if (loading === undefined || limit_ms === undefined) return
			timer = setTimeout(() => {
				isLate = true
				process.kill('SIGKILL')
			}, limit_ms)
		})
		const how = await ended
		clearTimeout(timer)
		if (loading === undefined) break
		results.set(loading, problemOf(loading, how, isLate || signal.aborted))
	}
	return results
}
