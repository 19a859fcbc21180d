import { startChild } from '../child.ts'
import type { CheckContext } from './contract.ts'

/** Sent by the child: what it loads next, then the problem with that; null if it loads. */
export type LoadReport = { loading: string } | { loaded: string; problem: string | null }

interface Loading extends Pick<CheckContext, 'env' | 'signal'> {
	child: URL
	/** Precede the names. */
	args: string[]
	/** For each name, not counting the start of the process. */
	limit_ms?: number
	/** The problem of a name whose code ended the process or took too long. `how`: as in `startChild`. */
	problemOf(name: string, how: string, isLate: boolean): string
}

/**
 * Loads code that may end its process or never finish, in a child process, one name after another. If one does, another process
 * loads the rest. Returns the problem of each name, null if it has none. Names that were not reached before `signal` aborted are
 * absent.
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
