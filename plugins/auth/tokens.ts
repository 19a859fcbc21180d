import { hash, timingSafeEqual } from 'node:crypto'
import { defined } from '../../core/util/defined.ts'
import { Fault, isFault } from '../../core/errors.ts'
import { newId, now, randomText } from '../../core/util/ids.ts'
import type { Context } from '../../core/plugin.ts'
import { change } from '../../core/store/change.ts'
import type { Op, Rev } from '../../core/store/ports.ts'
import { emitOrLog } from '../shared/emit-or-log.ts'
import type { Token, Tokens, TokenStatus } from './contract.ts'
import { unauthorized } from './unauthorized.ts'

/** The stored record. The text of the token is not stored. */
export interface TokenRecord extends Omit<Token, 'status'> {
	/** SHA-256 of the text, hex. */
	hash: string
	revoked_at: string | null
}

const SCOPE = 'auth'
const TOKEN_BYTES = 32
const TOKEN_FORM = /^svc_[A-Za-z0-9_-]{43}$/
/** Keeps it cheap to read all tokens. */
const TOKEN_LIMIT = 10_000
/** Creation reads all tokens only after this time, or at the limit. */
const RECOUNT_MS = 3_600_000
/** How long revoked and expired tokens are kept. */
const KEEP_ENDED_DAYS = 90
/** Ended tokens removed in one commit, which holds at most 100 writes. */
const SWEEP_LIMIT = 50

/** The key prefix of all tokens. */
export const TOKENS = [SCOPE, 'token'] as const
const tokenKey = (id: string) => [...TOKENS, id] as const
const hashKey = (hash: string) => [SCOPE, 'hash', hash] as const
const bootstrapKey = [SCOPE, 'bootstrap'] as const

export function tokensOf(ctx: Pick<Context, 'store' | 'emit' | 'log'>): Tokens {
	const { store } = ctx
	const recordOf = async (id: string): Promise<TokenRecord | undefined> =>
		(await store.getShared<TokenRecord>(tokenKey(id)))?.value
	const noneYet = async (): Promise<boolean> => (await store.get(bootstrapKey)) === undefined

	/** Those of the last count, and all created since: concurrent creation apart, at least as many as there are. `at`: of the count. */
	let counted = { tokens: TOKEN_LIMIT, at: 0 }

	/** Only creation makes the table grow, so creation also removes tokens that ended long ago. */
	const makeRoom = async (): Promise<void> => {
		if (counted.tokens < TOKEN_LIMIT && counted.at > Date.now() - RECOUNT_MS) return void counted.tokens++
		const outdated = Date.now() - KEEP_ENDED_DAYS * 86_400_000
		const old: TokenRecord[] = []
		let kept = 0
		for await (const { value } of store.list<TokenRecord>(TOKENS)) {
			if (endOf(value) < outdated) old.push(value)
			else kept++
		}
		if (kept >= TOKEN_LIMIT) {
			throw new Fault(
				'conflict',
				`there are ${TOKEN_LIMIT} tokens already; give new ones a ttl, and use fewer: tokens that ended more than ${KEEP_ENDED_DAYS} days ago are removed automatically`,
			)
		}
		const swept = old.slice(0, SWEEP_LIMIT).flatMap(removal)
		if (swept.length > 0) await store.commit(SCOPE, swept)
		counted = { tokens: kept + 1, at: old.length > SWEEP_LIMIT ? 0 : Date.now() }
	}

	const write = async (record: TokenRecord, mustBeFirst: boolean): Promise<void> => {
		const { id, hash } = record
		const ops: Op[] = [
			{ key: tokenKey(id), value: record, expect: null },
			{ key: hashKey(hash), value: { id }, expect: null },
		]
		if (await noneYet()) {
			try {
				await store.commit(SCOPE, [...ops, { key: bootstrapKey, value: { token_id: id }, expect: null }])
				return
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
				// Another caller has just created the first token.
			}
		}
		if (mustBeFirst) {
			throw unauthorized('another caller has just created the first token; send that token to create others')
		}
		await store.commit(SCOPE, ops)
	}

	return {
		noneYet,
		async create({ scopes, agents, label, limits, expires_at }, mustBeFirst = false) {
			await makeRoom()
			const token = `svc_${randomText(TOKEN_BYTES)}`
			const details = defined({ agents, label, limits })
			const shown = { id: newId(), scopes, ...details, expires_at, created_at: now() }
			await write({ ...shown, hash: hash('sha256', token), revoked_at: null }, mustBeFirst)
			const payload = { token_id: shown.id, scopes, ...details, expires_at }
			// The caller must get the text even if the event cannot be written.
			await emitOrLog(ctx, { event_type: 'token.created', payload })
			return { ...shown, token }
		},
		list: () => Array.fromAsync(store.list<TokenRecord>(TOKENS), ({ value }) => view(value)),
		async revoke(id) {
			const revoke = (write: (record: TokenRecord, rev: Rev) => Op[]): Promise<boolean> =>
				change(store, SCOPE, async () => {
					const entry = await store.get<TokenRecord>(tokenKey(id))
					if (!entry)
						throw new Fault('not_found', `there is no token "${id}"`, {
							hint: { route: 'GET /v1/auth/tokens', does: 'lists them' },
						})
					if (entry.value.revoked_at !== null) return { result: false }
					return { ops: write(entry.value, entry.rev), result: true }
				})
			const revoked = await revoke((record, rev) => [
				{ key: tokenKey(id), value: { ...record, revoked_at: now() }, expect: rev },
			]).catch((error: unknown) => {
				if (!isFault(error, 'storage_full')) throw error
				// Deletions are accepted on a full disk: a leaked token must be revocable at any time.
				return revoke(removal)
			})
			if (revoked) await emitOrLog(ctx, { event_type: 'token.revoked', payload: { token_id: id } })
		},
		async find(text) {
			if (!TOKEN_FORM.test(text)) return undefined
			const hashed = hash('sha256', text)
			const pointer = await store.getShared<{ id: string }>(hashKey(hashed))
			const record = pointer && (await recordOf(pointer.value.id))
			return record && timingSafeEqual(Buffer.from(hashed), Buffer.from(record.hash)) ? view(record) : undefined
		},
		async get(id) {
			const record = await recordOf(id)
			return record && view(record)
		},
	}
}

function removal({ id, hash }: TokenRecord): Op[] {
	return [
		{ key: tokenKey(id), value: undefined },
		{ key: hashKey(hash), value: undefined },
	]
}

/** The token as clients see it. */
export function view(record: TokenRecord): Token {
	const { hash: _hash, revoked_at: _revoked, ...token } = record
	return { ...token, status: statusOf(record) }
}

function statusOf(record: TokenRecord): TokenStatus {
	if (record.revoked_at !== null) return 'revoked'
	return endOf(record) <= Date.now() ? 'expired' : 'active'
}

/** When the token was revoked or expires, in milliseconds since 1970. */
function endOf({ revoked_at, expires_at }: TokenRecord): number {
	const end = revoked_at ?? expires_at
	return end === null ? Infinity : Date.parse(end)
}
