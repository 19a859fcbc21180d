import type { CallerLimits } from '../limits.ts'

/** `auth.oidc`: the identity provider whose access tokens count as tokens. */
export interface OidcSettings {
	/** The provider's address, exactly as `iss` of its tokens. */
	issuer: string
	/** Accepted values of `aud`. Absent: the address of the gateway, and of its MCP server. */
	audience?: string | string[]
	/** The gateway's client at the provider. */
	client_id?: string
	/** Absent: a public client. */
	client_secret?: string
	rules: readonly OidcRule[]
}

/** What callers whose tokens have these claims may do. */
export interface OidcRule {
	/** All claims must match. A claim that is a list must contain one of the values. */
	when: Readonly<Record<string, ClaimValue | readonly ClaimValue[]>>
	scopes: readonly string[]
	/** Patterns of agent names; absent: all agents. */
	agents?: readonly string[]
	limits?: CallerLimits
}

export type ClaimValue = string | number | boolean

export type Claims = Readonly<Record<string, unknown>> & {
	readonly iss: string
	readonly sub: string
	readonly exp: number
}
