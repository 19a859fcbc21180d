/** Plugins: those that run as the gateway sees them, the others as their folders lie. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { error, ok, warning } from '../contract.ts'
import type { Check, Finding, Patient } from '../contract.ts'

interface PluginView {
	name: string
	state: 'running' | 'failed'
	last_error: string | null
}

export const pluginChecks: Check[] = [
	{
		id: 'plugin.failed',
		about: 'the plugins',
		async run(patient) {
			const gateway = await patient.gateway()
			if (!gateway) return thirdParties(patient)
			const plugins = await gateway.get<PluginView[]>('/v1/plugins')
			const findings = plugins.flatMap(({ name, state, last_error }): Finding[] => {
				if (last_error === null) return []
				const todo = `mend what it names and save its files or gateway.yaml, which starts it anew; or switch it off: plugins.${name}: false`
				return [(state === 'failed' ? error : warning)(`plugin ${name}: ${last_error}`, todo)]
			})
			return findings.length > 0 ? findings : ok(`all ${plugins.length} plugins run`)
		},
	},
]

const entries = ['index.ts', 'index.js', 'index.mjs']

/** Their code is not run: only whether there is any. */
async function thirdParties({ home, root, config }: Patient): Promise<Finding | Finding[]> {
	const findings: Finding[] = []
	for (const [name, said] of Object.entries((await config()).plugins)) {
		const { enabled = true, path = name } = typeof said === 'object' ? said : { enabled: said }
		if (!enabled || existsSync(join(root, 'plugins', name, 'index.ts'))) continue
		const folder = resolve(join(home, 'plugins'), path)
		if (entries.some((file) => existsSync(join(folder, file)))) continue
		findings.push(
			error(
				`plugin ${name} is switched on, and there is no ${entries.join(' or ')} in ${folder}`,
				`correct the name in gateway.yaml, set plugins.${name}.path to its folder, or switch it off: plugins.${name}: false`,
			),
		)
	}
	return findings.length > 0 ? findings : ok('every plugin has its files')
}
