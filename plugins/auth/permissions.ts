/** The permissions and limits of a caller, from its token or from the rules that match its claims. */
import type { Credentials } from './contract.ts'
import type { CallerLimits } from './limits.ts'

/**
 * A caller limited to some agents has no authority over the gateway. For it, `*` means all other scopes, except `vault:read`,
 * which shows the names of secrets.
 */
export function permissionsOf(
	{ scopes, agents }: { scopes: readonly string[]; agents?: readonly string[] | undefined },
	names: Iterable<string>,
): Pick<Credentials, 'scope' | 'agents'> {
	if (!agents) return { scope: [...scopes] }
	const all = scopes.includes('*') ? [...names] : scopes
	return { scope: all.filter((name) => name !== '*' && name !== 'vault:read'), agents }
}

/** `id`: part of a key in the store. `name`: begins messages about a limit. */
export function limitsOf(
	id: string,
	name: string,
	limits: CallerLimits | undefined,
): Pick<Credentials, 'requests_per_minute' | 'streams' | 'payer'> {
	if (!limits) return {}
	const { requests_per_minute, streams, ...ofDay } = limits
	return {
		...(requests_per_minute !== undefined && { requests_per_minute }),
		...(streams !== undefined && { streams }),
		...(Object.keys(ofDay).length > 0 && { payer: { id, name, limits: ofDay } }),
	}
}
