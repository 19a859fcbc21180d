/** The permissions of a caller of the identity provider, from the rules of `auth.oidc` that match its claims. */
import { hash } from 'node:crypto'
import { Fault } from '../../../core/errors.ts'
import { reaches } from '../../shared/agent-limit.ts'
import type { Actor } from '../../../core/util/context.ts'
import { printable } from '../../../core/util/printable.ts'
import type { Credentials, Needs } from '../contract.ts'
import type { CallerLimits } from '../limits.ts'
import { limitsOf, permissionsOf } from '../permissions.ts'
import { holds } from '../../shared/scopes.ts'
import type { Claims, ClaimValue, OidcRule } from './contract.ts'

/** The claims with the scopes of a token: RFC 9068, and Entra's name. */
const SCOPE_CLAIMS = ['scope', 'scp']
/** The first of these claims that a token has is the caller's label. */
const LABELS = ['email', 'preferred_username', 'name', 'client_id']
const LABEL_LIMIT = 100

export function rulesFor(rules: readonly OidcRule[], claims: Claims): OidcRule[] {
	return rules.filter(({ when }) =>
		Object.entries(when).every(([name, wanted]) => {
			const found = [claimIn(claims, name)].flat()
			return [wanted].flat().some((value: ClaimValue) => found.includes(value))
		}),
	)
}

/** The claim of this name; otherwise dots lead to nested claims: `realm_access.roles` is `roles` in the claim `realm_access`. */
function claimIn(claims: Claims, name: string): unknown {
	if (Object.hasOwn(claims, name)) return claims[name]
	let at: unknown = claims
	for (const part of name.split('.')) {
		if (typeof at !== 'object' || at === null || !Object.hasOwn(at, part)) return undefined
		at = (at as Record<string, unknown>)[part]
	}
	return at
}

/**
 * The permissions that these rules give for one request. The scopes of one rule must not apply to the agents of another. So if
 * the rules for all agents permit the request, they alone apply. Otherwise, a request about one agent has the scopes of all rules
 * for that agent. Any other request has the scopes that all rules permitting it have in common, for the agents of these rules.
 */
export function permissionsFor(
	rules: readonly OidcRule[],
	{ scopes, wholeGateway }: Needs,
	agent: string | undefined,
	scopeNames: Iterable<string>,
): Pick<Credentials, 'scope' | 'agents'> {
	const permits = (scope: readonly string[]): boolean => !scopes || holds(scope, ...scopes)
	const general = unionOf(rules.filter((rule) => !rule.agents).map((rule) => rule.scopes))
	const limited = rules.filter((rule) => rule.agents && (agent === undefined || reaches(rule, agent)))
	if (general.length > 0 && (limited.length === 0 || wholeGateway || permits(general))) return { scope: general }
	// With no agents, the guard answers as for an agent that does not exist.
	if (agent !== undefined && limited.length === 0) return { scope: [...(scopes ?? [])], agents: [] }
	const names = [...scopeNames]
	const scopesOf = (own: readonly string[]): string[] => permissionsOf({ scopes: own, agents: [] }, names).scope
	if (agent !== undefined)
		return { scope: unionOf([...limited.map((rule) => scopesOf(rule.scopes)), scopesOf(general)]), agents: [agent] }
	const fitting = limited.filter((rule) => permits(scopesOf(rule.scopes)))
	const [first = [], ...others] = (fitting.length > 0 ? fitting : limited).map((rule) => scopesOf(rule.scopes))
	return {
		scope: first.filter((scope) => others.every((other) => other.includes(scope))),
		agents: unionOf(fitting.map((rule) => rule.agents ?? [])),
	}
}

/** A summary of these rules for people. It does not show which scopes are for which agents. */
export function summaryOf(rules: readonly OidcRule[]): { scopes: string[]; agents?: string[]; limits?: CallerLimits } {
	const limits = rules.find((rule) => rule.limits)?.limits
	return {
		scopes: unionOf(rules.map(({ scopes }) => scopes)),
		...(rules.every(({ agents }) => agents) && { agents: unionOf(rules.map(({ agents = [] }) => agents)) }),
		...(limits && { limits }),
	}
}

/** The scopes that a client must request so that rules for scopes match. Values with spaces are lists (RFC 6749). */
export function scopesIn(rules: readonly OidcRule[]): string[] {
	const values = rules.flatMap(({ when }) => SCOPE_CLAIMS.flatMap((claim) => when[claim] ?? []))
	return unionOf(values.map((value) => String(value).split(' ')))
}

/** The latest time of a Date. */
const LATEST_MS = 8.64e15

export function expiryOf({ exp }: Claims): string {
	return new Date(Math.min(exp * 1000, LATEST_MS)).toISOString()
}

function unionOf(lists: readonly (readonly string[])[]): string[] {
	return [...new Set(lists.flat())]
}

/** The caller's identity, and the limits of the first rule that has any. */
export function identityOf(
	rules: readonly OidcRule[],
	claims: Claims,
): Omit<Credentials, 'scope' | 'agents' | 'local'> {
	const label = LABELS.map((name) => claims[name]).find((value) => typeof value === 'string' && value !== '')
	const actor: Actor = {
		kind: 'oidc',
		id: claims.sub,
		...(label !== undefined && { label: printable(String(label)).slice(0, LABEL_LIMIT) }),
	}
	const id = `oidc:${hash('sha256', JSON.stringify([claims.iss, claims.sub])).slice(0, 32)}`
	const limits = rules.find((rule) => rule.limits)?.limits
	return {
		token_id: id,
		actor,
		claims,
		rules,
		...limitsOf(id, actor.label ?? claims.sub, limits),
	}
}

export function noMatchingRule(): Fault {
	return new Fault('forbidden', 'no rule of auth.oidc matches the claims of your token; an operator can add one')
}
