import { startChild } from '../child.ts'
import type { CheckContext } from './contract.ts'
import type { PluginReport } from './plugin-child.ts'
import { programOf } from '../../util/own-code.ts'

const child = programOf(new URL('./plugin-child.ts', import.meta.url))

/**
 * Loads the third-party plugins that gateway.yaml switches on, in a child process, and returns the problem of each;
 * null if it has none. Those that were not reached within the time limit are `undefined`.
 */
export async function loadPlugins(
	context: CheckContext,
	names: string[],
): Promise<Map<string, string | null | undefined>> {
	const results = new Map<string, string | null | undefined>()
	const limit = AbortSignal.timeout(context.limits.plugins)
	while (results.size < names.length && !limit.aborted && !context.signal.aborted) {
		const { broken, how, isLate } = await loadUntilEnd(context, limit, results)
		if (broken === undefined) break
		results.set(
			broken,
			isLate
				? `plugin "${broken}" does not load: its code does not finish within ${context.limits.plugin / 1000} s`
				: `plugin "${broken}" does not load: its code ends the process (${how})`,
		)
	}
	return new Map(names.map((name) => [name, results.get(name)]))
}

/** Returns the plugin that was being loaded when the process ended; undefined if all were loaded. */
async function loadUntilEnd(
	context: CheckContext,
	limit: AbortSignal,
	results: Map<string, string | null | undefined>,
) {
	let loading: string | undefined
	let isLate = false
	let timer: NodeJS.Timeout | undefined
	const options = { env: context.env, signal: AbortSignal.any([limit, context.signal]) }
	const args = [context.home, ...results.keys()]
	const { process, ended } = startChild<PluginReport>(child, args, options, (report) => {
		loading = 'loading' in report ? report.name : undefined
		if ('problem' in report) results.set(report.name, report.problem)
		clearTimeout(timer)
		if (loading === undefined) return
		timer = setTimeout(() => {
			isLate = true
			process.kill('SIGKILL')
		}, context.limits.plugin)
	})
	const how = await ended
	clearTimeout(timer)
	return { broken: loading, how, isLate: isLate || limit.aborted }
}
