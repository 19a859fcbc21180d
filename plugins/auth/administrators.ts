import type { Token } from './contract.ts'
import type { OidcSettings } from './oidc/contract.ts'

/** Whether any caller could administer the gateway in token mode: with a token, or by a rule of the identity provider. */
export function canAdminister(
	tokens: readonly Pick<Token, 'scopes' | 'agents' | 'status'>[],
	oidc: Pick<OidcSettings, 'rules'> | null,
): boolean {
	const active = tokens.filter(({ status }) => status === 'active')
	return [...active, ...(oidc?.rules ?? [])].some(
		({ scopes, agents }) => !agents && scopes.some((scope) => scope === '*' || scope === 'tokens:admin'),
	)
}

/** The message if no caller could. */
export const noAdministrator =
	'no valid token could administer the gateway; first create one while auth_mode is loopback (svc tokens create --scope "*"), store it (svc login), then set auth_mode: token'
