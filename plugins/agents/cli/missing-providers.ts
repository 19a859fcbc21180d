import { suggest } from '../../../config/suggest.ts'
import { readConfig } from '../../../core/host/config.ts'
import { readRuntimeFile } from '../../../core/process/runtime-file.ts'
import type { Cli } from '../../../core/cli/contract.ts'

/**
 * Names of providers in what is set that gateway.yaml does not have, a line each: the gateway stores any name. Empty for a remote
 * gateway, whose settings are not readable here.
 */
export function missingProviders(cli: Cli, { provider, fallback }: Readonly<Record<string, unknown>>): string[] {
	const named = [provider, fallback].flat().filter((name) => typeof name === 'string')
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
