/** The keys of the vault's records in the store, in the scope `vault`. */
export const SCOPE = 'vault'

export const keys = {
	state: [SCOPE, 'state'],
	secrets: [SCOPE, 'secret'],
	secret: (id: string) => [SCOPE, 'secret', id] as const,
	values: [SCOPE, 'value'],
	/** Separate, so that listing secrets and changing the master key do not read values. */
	value: (id: string, version: number) => [SCOPE, 'value', id, String(version)] as const,
	/** Earlier values: one record for each secret whose value was replaced after it had been read. */
	allEarlier: [SCOPE, 'earlier'],
	earlier: (id: string) => [SCOPE, 'earlier', id] as const,
	names: [SCOPE, 'name'],
	name: (hash: Uint8Array) => [SCOPE, 'name', Buffer.from(hash).toString('base64url')] as const,
	grants: [SCOPE, 'grant'],
	grantsOf: (agent_uid: string) => [SCOPE, 'grant', agent_uid] as const,
	grant: (agent_uid: string, secret_id: string) => [SCOPE, 'grant', agent_uid, secret_id] as const,
	/** Former holders: agents whose grant was revoked. */
	formers: [SCOPE, 'former'],
	formersOf: (agent_uid: string) => [SCOPE, 'former', agent_uid] as const,
	former: (agent_uid: string, secret_id: string) => [SCOPE, 'former', agent_uid, secret_id] as const,
	grantIds: [SCOPE, 'grant-id'],
	grantId: (grant_id: string) => [SCOPE, 'grant-id', grant_id] as const,
} as const
