/** The plugins as the running gateway reports them. If no gateway runs, loads the third-party plugins. */
import { desiredState } from '../../../host/desired-state.ts'
import type { PluginStatus } from '../../../status.ts'
import { error, note, ok, warning } from '../contract.ts'
import type { Check, Finding, CheckContext } from '../contract.ts'
import { loadEach } from '../load-each.ts'
import { programOf } from '../../../util/own-code.ts'

const child = programOf(new URL('../plugin-child.ts', import.meta.url))

export const pluginChecks: Check[] = [
	{
		id: 'plugin.failed',
		about: 'the plugins',
		async run(context) {
			const gateway = await context.gateway()
			if (!gateway) return thirdParties(context)
			const plugins = await gateway.get<PluginStatus[]>('/v1/plugins')
			const findings = plugins.flatMap(({ name, state, last_error }): Finding[] => {
				if (last_error === null) return []
				const todo = `fix what the message names, then save its files or gateway.yaml, which restarts it; or switch it off: plugins.${name}: false`
				return [(state === 'running' ? warning : error)(`plugin ${name}: ${last_error}`, todo)]
			})
			return findings.length > 0 ? findings : ok(`all ${plugins.length} plugins run`)
		},
	},
]

/** Loads the code of third-party plugins as a gateway would, without starting it. */
async function thirdParties(context: CheckContext): Promise<Finding | Finding[]> {
	const names = desiredState(await context.config())
		.plugins.filter(({ builtIn }) => !builtIn)
		.map(({ name }) => name)
	if (names.length === 0) return ok('no third-party plugins are switched on')
	const { home, env, signal, limits } = context
	const problems = await loadEach(names, {
		child,
		args: [home],
		env,
		signal: AbortSignal.any([AbortSignal.timeout(limits.plugins), signal]),
		limit_ms: limits.plugin,
		problemOf(name, how, isLate) {
			const what = isLate ? `does not finish within ${limits.plugin / 1000} s` : `ends the process (${how})`
			return `plugin "${name}" does not load: its code ${what}`
		},
	})
	const findings = names.flatMap((name): Finding[] => {
		const problem = problems.get(name)
		if (problem === null) return []
		if (problem === undefined) {
			const todo = 'correct the plugin that did not finish, then check again: svc doctor --only plugin.failed'
			return [note(`plugin "${name}" was not loaded: the time limit of this check was reached before`, todo)]
		}
		const todo = `correct its files or its settings, or switch it off: svc config set plugins.${name} false`
		return [error(problem, todo)]
	})
	return findings.length > 0 ? findings : ok(`every third-party plugin loads (${names.length})`)
}
