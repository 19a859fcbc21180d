/** What is stored of logins, sealed by the vault, in the scope of the agent: tokens, and logins that have begun. */
import { timingSafeEqual } from 'node:crypto'
import { isFault } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import { agentScope } from '../../../core/store/agent-scope.ts'
import type { Key, Op } from '../../../core/store/ports.ts'
import type { ClientInformation, Issuer, Tokens } from './oauth.ts'

/** Of a server that somebody signed in to, or that has a client. */
export interface KeptLogin {
	issuer: Issuer
	/** Not the operator's own, whose settings have it. */
	client?: ClientInformation
	/** Where that client was registered for. */
	redirect?: string
	tokens?: Tokens
	/** When a person signed in. */
	signed_in_at?: string
	/** What was asked for; the server may have granted other scopes. */
	scope?: string
	/** How often the server refused these tokens for want of scopes. */
	refusals?: number
}

/** A login that has begun, and whose code is expected. */
export interface PendingLogin {
	issuer: Issuer
	client: ClientInformation
	redirect: string
	code_verifier: string
	scope?: string
	/** sha256 of the state, as hex. */
	state: string
	/** sha256 of the cookie of the browser that must end it; null: any. */
	browser: string | null
	expires_at: number
}

interface Sealed {
	sealed: Uint8Array
}

export type KeptLogins = ReturnType<typeof keptLogins>

export const loginKeys = {
	login: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'mcp', 'login', id],
	pending: (agent: AgentRef, id: string): Key => [agentScope(agent.uid), 'mcp', 'pending', id],
}

/** `server`: the key of its record, which a login must not outlive. */
export function keptLogins(
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
		async read(): Promise<KeptLogin | undefined> {
			const entry = await store.get<Sealed>(at)
			return entry && unseal<KeptLogin>(entry.value)
		},
		/** Undefined deletes it. Throws `conflict` if the server was removed. */
		write: (login: KeptLogin | undefined): Promise<void> => (login ? write(at, login) : store.delete(at)),
		/** There is one at most: another one takes its place. Throws as `write`. */
		begin: (pending: PendingLogin): Promise<void> => write(pendingAt, pending),
		/** Removes and returns the one with this state, for one caller only. Another state changes nothing: anyone can invent one. */
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

/** In constant time. */
export function isEqual(a: string, b: string): boolean {
	return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
