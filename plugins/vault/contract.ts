import type { AgentRef, ToolCall } from '../../core/plugin.ts'

/** A secret as clients see it, without its value. */
export interface Secret {
	id: string
	name: string
	created_at: string
	/** Its purpose, such as `channel`. */
	policy_label?: string
	/** The record was changed outside the gateway or is damaged, so that its name and value cannot be read. */
	damaged?: true
}

export interface Grant {
	grant_id: string
	/** The agent's name. */
	agent_id: string
	secret_id: string
	/** Whether the agent's model gets the value itself instead of a handle. */
	reveal: boolean
	/** `host` (any port) or `host:port`: the value is sent only over HTTP, and only to these hosts. Absent: no restriction. */
	hosts?: string[]
	created_at: string
}

/** The HTTP request that sends a value. */
export interface Outlet {
	/** Its first address, before redirects. */
	url: URL
	/** Called for each grant with hosts: the value must not go to any other host, redirects included. */
	keepTo(hosts: readonly string[]): void
}

/** Who reads a secret. `via` names the component, such as `vault.read` or `skill:weather`. */
export interface SecretReading {
	agent: AgentRef
	via: string
	emit: ToolCall['emit']
	/** Absent: the value is not sent over HTTP, and a grant with hosts denies the read. */
	outlet?: Outlet
}

/** All methods throw `vault_locked` if the vault's key is missing, unless noted otherwise. */
export interface VaultService {
	/**
	 * Returns a secret's value under the agent's grant, and adds it to the redactor. Emits `vault.accessed`. If there is no such
	 * secret or no grant, or if the grant's hosts do not include the outlet, emits `vault.denied` and throws `vault_denied`.
	 */
	read(name: string, reading: SecretReading): Promise<{ value: string; reveal: boolean }>
	/**
	 * Replaces the handles `{{secret:NAME}}` by values in every string of plain data (not in its keys); returns
	 * the same object if there are none. `only`: handles of other names stay. Throws like `read`, and
	 * `invalid_arguments` above 100 different handles, 1 MiB of values or 200 levels.
	 */
	fill<T>(data: T, reading: SecretReading, only?: ReadonlySet<string>): Promise<T>
	/** The names in the handles that `fill` would replace, each once. Throws `invalid_arguments` above 200 levels. */
	named(data: unknown): string[]
	/** The hosts of the agent's grant for the secret of this name; undefined without a grant, or without hosts. */
	hostsOf(name: string, agent: AgentRef): Promise<readonly string[] | undefined>
	/** Ids of the secrets whose values the agent's model may see; none while the vault is locked. Cheap. */
	revealed(agent: AgentRef): Promise<ReadonlySet<string>>
	/** Returns a value for the gateway's own use, such as a provider's key, by the secret's id or name. Throws `not_found`. */
	open(ref: string): Promise<string>
	/** Whether a secret with this id or name exists. */
	has(ref: string): Promise<boolean>
	/**
	 * Calls `listener` when a secret is created, changed or deleted, until the returned function is called. Survives the
	 * replacement of this plugin.
	 */
	onChanged(listener: (secret: { id: string; name: string }) => void): () => void
	/** Encrypts text that another plugin stores in its own record. `about` binds it to that record. */
	seal(text: string, about: string): Promise<Uint8Array>
	/** Throws `vault_locked` if it was encrypted by another vault or with another `about`, or was changed since. */
	unseal(sealed: Uint8Array, about: string): Promise<string>
	// The rest is for the vault's own routes.
	secrets: Secrets
	grants: Grants
	/**
	 * Creates a new master key. Throws `conflict` if the operator provides the key. Returns the number of re-encrypted secrets.
	 */
	rotateKey(): Promise<number>
	/**
	 * Deletes all secrets and grants of a locked vault, and unlocks it with the present key, or a new one if it is missing. Throws
	 * `conflict` if the vault is not locked, and `vault_locked` if the present key is invalid. Returns the number of deleted secrets.
	 */
	reset(): Promise<number>
}

export interface Secrets {
	/** Throws `already_exists`, and `conflict` at 10,000 secrets. */
	create(secret: { name: string; value: string; policy_label?: string }): Promise<Secret>
	/**
	 * Changes the value of the secret with this id or name; grants stay. Throws `not_found`, `store_damaged` if its record
	 * cannot be read, and `conflict` if `policy_label` is given and differs from the secret's: a label never changes.
	 */
	replace(ref: string, value: string, policy_label?: string): Promise<Secret>
	/** Deletes the secret with this id or name, and its grants. Throws `not_found`. */
	remove(ref: string): Promise<void>
	/** Oldest first. */
	list(): Promise<Secret[]>
}

export interface Grants {
	/**
	 * `secret`: id or name. `hosts`: see `Grant`. Throws `not_found`, `already_exists`, `conflict` at 10,000 grants, and
	 * `invalid_request` for `hosts` together with `reveal`.
	 */
	create(grant: { agent_id: string; secret: string; reveal: boolean; hosts?: string[] }): Promise<Grant>
	/** Throws `not_found`. */
	remove(grant_id: string): Promise<void>
	/** Oldest first; of one agent if given. */
	list(agent_id?: string): Promise<Grant[]>
}

declare module '../../core/plugin.ts' {
	interface Services {
		vault: VaultService
	}
}

export type VaultCode = 'vault_denied' | 'vault_locked'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<VaultCode, true> {}
}
