import { readConfig } from '../../../core/host/config.ts'
import { suggest } from '../../../config/suggest.ts'
import { readRuntimeFile } from '../../../core/process/runtime-file.ts'
import type { Cli } from '../../../core/cli/contract.ts'

/** The keys of an agent's config that the gateway uses. */
export const agentKeys = [
	'approved_skills',
	'context',
	'context_window',
	'fallback',
	'limits',
	'max_tokens',
	'memory',
	'model',
	'params',
	'preamble',
	'provider',
	'temperature',
	'timezone',
	'tools',
]

/**
 * What is probably a slip in what is set, a line each: the gateway stores keys that it does not use, and any name of a
 * provider. Keys that are removed are not checked.
 */
export function slipsIn(cli: Cli, config: Readonly<Record<string, unknown>>): string[] {
	const set = Object.keys(config).filter((key) => config[key] !== null)
	const unknown = set.filter((key) => !agentKeys.includes(key))
	const named = [config.provider, config.fallback].flat().filter((name) => typeof name === 'string')
	const providers = named.length > 0 ? providersOf(cli) : undefined
	const missing = providers ? [...new Set(named)].filter((name) => !providers.includes(name)) : []
	return [
		...unknown.map((key) => `"${key}" is stored, but the gateway does not use it; ${choice(key, agentKeys)}`),
		...missing.map(
			(name) => `"${name}" is no provider of gateway.yaml, so runs fail; ${choice(name, providers ?? [])}`,
		),
	]
}

function choice(word: string, choices: string[]): string {
	const meant = suggest(word, choices)
	return meant === undefined ? `there are: ${choices.join(', ')}` : `did you mean "${meant}"?`
}

/** The providers of the gateway that runs from this home, whose settings are readable here; undefined for a remote gateway. */
function providersOf({ env, home }: Cli): string[] | undefined {
	if (env.SVC_URL || readRuntimeFile(home) === undefined) return undefined
	try {
		const names = Object.keys(readConfig({ home, env }).providers)
		// With none set up there is `openai` too where the gateway, and not svc, has OPENAI_API_KEY.
		return names.join() === 'offline' ? ['offline', 'openai'] : names
	} catch {
		return undefined // what is wrong with the settings is reported elsewhere
	}
}
