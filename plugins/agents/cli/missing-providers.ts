import { suggest } from '../../../config/suggest.ts'
import { readConfig } from '../../../core/host/config.ts'
import { readRuntimeFile } from '../../../core/process/runtime-file.ts'
import type { Cli } from '../../../core/cli/contract.ts'

/**
 * Warnings about providers that gateway.yaml does not have: the gateway stores any name. Empty for a remote gateway, whose
 * settings cannot be read here.
 */
export function missingProviders(cli: Cli, config: { provider?: unknown; fallback?: unknown }): string[] {
	const named = [config.provider, config.fallback].flat().filter((name) => typeof name === 'string')
	const providers = named.length > 0 ? providersOf(cli) : undefined
	if (!providers) return []
	return [...new Set(named)]
		.filter((name) => !providers.includes(name))
		.map((name) => {
			const meant = suggest(name, providers)
			const choice = meant === undefined ? `there are: ${providers.join(', ')}` : `did you mean "${meant}"?`
			return `gateway.yaml has no provider "${name}", so runs fail; ${choice}`
		})
}

/** The providers of the gateway that runs from this home; undefined for a remote gateway. */
function providersOf({ env, home }: Cli): string[] | undefined {
	if (env.SVC_URL || readRuntimeFile(home) === undefined) return undefined
	try {
		const names = Object.keys(readConfig({ home, env }).providers)
		// Without providers in the file, the gateway also has `openai` if OPENAI_API_KEY is set in its own environment.
		return names.join() === 'offline' ? ['offline', 'openai'] : names
	} catch {
		return undefined // errors in the settings are reported elsewhere
	}
}
