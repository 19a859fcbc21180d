import type { AgentRef, ToolCall } from '../../core/plugin.ts'

/** What clients see of a secret; never its value. */
export interface Secret {
	id: string
	name: string
	created_at: string
	/** What it is for, such as `channel`. */
	policy_label?: string
	/** Its record was changed outside the gateway, or is damaged: neither its name nor its value can be read. */
	damaged?: true
}

export interface Grant {
	grant_id: string
	/** The agent's name. */
	agent_id: string
	secret_id: string
	/** A model that reads it gets the value itself, not a handle. */
	reveal: boolean
	created_at: string
}

/** Who reads, for the events; `via` names what reads it, such as `vault.read` or `skill:weather`. */
export interface Reading {
	agent: AgentRef
	via: string
	emit: ToolCall['emit']
}

/** What every plugin may use. All of it throws `vault_locked` where the vault's key is not there, unless it says otherwise. */
export interface Vault {
	/**
	 * A secret's value under the agent's grant; from now on the redactor looks for it. Emits `vault.accessed`, or
	 * `vault.denied` and throws `vault_denied`: the same for a name that does not exist as for a missing grant.
	 */
	read(name: string, reading: Reading): Promise<{ value: string; reveal: boolean }>
	/**
	 * Puts values in the place of the handles `{{secret:NAME}}` in every string of plain data (not in its keys); answers
	 * with the same object where there are none. Throws like `read`, and `invalid_arguments` above 100 different handles,
	 * 1 MiB of values or 200 levels.
	 */
	fill<T>(data: T, reading: Reading): Promise<T>
	/** Ids of the secrets that the agent's model may see as they are; none while the vault is locked. Cheap. */
	revealed(agent: AgentRef): Promise<ReadonlySet<string>>
	/** For the gateway's own use, by a secret's id or name: a provider's key, a bot's token. Throws `not_found`. */
	open(ref: string): Promise<string>
	/** Whether there is a secret of this id or name. */
	has(ref: string): Promise<boolean>
	/**
	 * Hears that a secret is new, has another value or is gone; until the returned function is called. Works on when this
	 * plugin is replaced.
	 */
	onChanged(heard: (secret: { id: string; name: string }) => void): () => void
	/** Encrypts text that another plugin keeps in a record of its own. `about` binds it to that record. */
	seal(text: string, about: string): Promise<Uint8Array>
	/** Throws `vault_locked` where it was sealed in another vault or about something else, or was changed since. */
	unseal(sealed: Uint8Array, about: string): Promise<string>
}

export interface Secrets {
	/** Throws `already_exists`, and `conflict` at 10,000 secrets. */
	create(secret: { name: string; value: string; policy_label?: string }): Promise<Secret>
	/** Another value for the secret of this id or name; grants stay. Throws `not_found`, and `store_damaged` where its record cannot be read. */
	replace(ref: string, value: string): Promise<Secret>
	/** The secret of this id or name, with its grants. Throws `not_found`. */
	remove(ref: string): Promise<void>
	/** Oldest first. */
	list(): Promise<Secret[]>
}

export interface Grants {
	/** `secret`: id or name. Throws `not_found`, `already_exists`, and `conflict` at 10,000 grants. */
	create(grant: { agent_id: string; secret: string; reveal: boolean }): Promise<Grant>
	/** Throws `not_found`. */
	remove(grant_id: string): Promise<void>
	/** Oldest first; of one agent where it is given. */
	list(agent_id?: string): Promise<Grant[]>
}

/** What the vault's own routes use. */
export interface VaultService extends Vault {
	secrets: Secrets
	grants: Grants
	/** Makes a new master key. Throws `conflict` where the operator gives the key. Answers how many secrets were wrapped anew. */
	rotateKey(): Promise<number>
}

declare module '../../core/plugin.ts' {
	interface Services {
		vault: VaultService
	}
}
