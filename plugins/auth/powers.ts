/** What a caller may do and use, of its token or of the rules that match it. */
import type { Credentials } from './contract.ts'
import type { CallerLimits } from './limits.ts'

/**
 * For callers with some agents only, who have no authority over the gateway: `*` means every other scope then, and
 * `vault:read`, by which names of secrets are shown, is not among them.
 */
export function powersOf(
	{ scopes, agents }: { scopes: readonly string[]; agents?: readonly string[] | undefined },
	names: Iterable<string>,
): Pick<Credentials, 'scope' | 'agents'> {
	if (!agents) return { scope: [...scopes] }
	const all = scopes.includes('*') ? [...names] : scopes
	return { scope: all.filter((name) => name !== '*' && name !== 'vault:read'), agents }
}

/** `id`: the caller, as a part of a key in the store. `name`: at the beginning of a message. */
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
