/** The stored tokens and pending logins, in the scope of the agent, encrypted by the vault. */
import { timingSafeEqual } from 'node:crypto'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Key, Op } from '../../../core/store/ports.ts'
import type { ClientInformation, Issuer, Tokens } from './oauth.ts'

/** The client that was registered for a server, and the tokens of a completed login. */
export interface StoredLogin {
	issuer: Issuer
	/** Absent for a client from the operator's settings. */
	client?: ClientInformation
	/** The redirect address for which that client was registered. */
	redirect?: string
	tokens?: Tokens
	/** When a person signed in. Absent: the gateway signed in itself. */
	signed_in_at?: string
	/** The requested scopes. The server may have granted others. */
	scope?: string
	/** How often the server refused tokens because of missing scopes. */
	refusals?: number
}

/** A login that waits for its authorization code. */
export interface PendingLogin {
	issuer: Issuer
	client: ClientInformation
	redirect: string
	code_verifier: string
	scope?: string
	/** sha256 of the state, as hex. */
	state: string
	/** sha256 of the cookie that the browser must send to complete the login; null: any browser can. */
	browser: string | null
	expires_at: number
}

interface Sealed {
	sealed: Uint8Array
}

export type StoredLogins = ReturnType<typeof storedLogins>

export const loginKeys = {
	login: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'mcp', 'login', id],
	pending: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'mcp', 'pending', id],
}

/** `server`: the key of the server's record. Writes fail if that record was deleted, so that no login outlives its server. */
export function storedLogins(
	agent: AgentRef,
	{ id, server }: { id: string; server: Key },
	{ store, use }: Pick<Context, 'store' | 'use'>,
) {
	const about = `mcp-login:${id}`
	const at = loginKeys.login(agent, id)
	const pendingAt = loginKeys.pending(agent, id)
	const write = async (key: Key, value: unknown): Promise<void> => {
		const sealed: Sealed = { sealed: await use('vault').seal(JSON.stringify(value), about) }
		const ops: Op[] = [
			{ key, value: sealed },
			{ key: server, check: true },
		]
		await store.commit(agentScope(agent.uid), ops)
	}
	const unseal = async <T>({ sealed }: Sealed): Promise<T> => JSON.parse(await use('vault').unseal(sealed, about)) as T
	return {
		async read(): Promise<StoredLogin | undefined> {
			const entry = await store.get<Sealed>(at)
			return entry && unseal<StoredLogin>(entry.value)
		},
		/** Undefined deletes it. Throws `conflict` if the server was removed. */
		write: (login: StoredLogin | undefined): Promise<void> => (login ? write(at, login) : store.delete(at)),
		/** Replaces an earlier pending login. Throws as `write`. */
		begin: (pending: PendingLogin): Promise<void> => write(pendingAt, pending),
		/**
		 * Removes the pending login with this state and returns it, to one caller only. With another state it changes nothing, since
		 * anyone can send one.
		 */
		async take(state: string): Promise<PendingLogin | undefined> {
			const entry = await store.get<Sealed>(pendingAt)
			if (!entry) return undefined
			const pending = await unseal<PendingLogin>(entry.value)
			if (!isEqual(state, pending.state)) return undefined
			try {
				await store.delete(pendingAt, entry.rev)
			} catch (error) {
				if (isFault(error, 'conflict')) return undefined
				throw error
			}
			return pending
		},
	}
}

/** Compares in constant time. */
export function isEqual(a: string, b: string): boolean {
	return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
