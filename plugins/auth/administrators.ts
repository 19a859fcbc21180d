/** Whether any caller could still administer the gateway if every request needed a token. */

import type { OidcSettings } from './oidc/contract.ts'

interface TokenView {
	scopes: readonly string[]
	agents?: readonly string[]
	status: string
}

/** `oidc`: callers of the identity provider may do it, too. */
export function canAdminister(tokens: readonly TokenView[], oidc: Pick<OidcSettings, 'rules'> | null): boolean {
	const active = tokens.filter(({ status }) => status === 'active')
	return [...active, ...(oidc?.rules ?? [])].some(
		({ scopes, agents }) => !agents && scopes.some((scope) => scope === '*' || scope === 'tokens:admin'),
	)
}

/** What to do if no caller could. */
export const noAdministrator =
	'no valid token could administer the gateway; first create one while auth_mode is loopback (svc tokens create --scope "*"), store it (svc login), then set auth_mode: token'
