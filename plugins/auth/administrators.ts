/** Whether any caller could still administer the gateway if every request needed a token. */

interface TokenView {
	scopes: readonly string[]
	agents?: readonly string[]
	status: string
}

export function canAdminister(tokens: readonly TokenView[]): boolean {
	return tokens.some(
		({ scopes, agents, status }) =>
			status === 'active' && !agents && scopes.some((scope) => scope === '*' || scope === 'tokens:admin'),
	)
}

/** What to do if no caller could. */
export const noAdministrator =
	'no valid token could administer the gateway; first create one while auth_mode is loopback (svc tokens create --scope "*"), store it (svc login), then set auth_mode: token'
