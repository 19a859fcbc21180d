/** Sessions of the console, identified by a cookie of the browser. */
import { hash } from 'node:crypto'
import { Fault } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import type { Key } from '../../../core/store/ports.ts'
import { now, randomText } from '../../../core/util/ids.ts'
import type { Claims } from './contract.ts'

export interface Session {
	id: string
	/** The claims of the sign-in, except `exp`: when the session ends. */
	claims: Claims
}

/** The stored record. The cookie itself is not stored. */
interface SessionRecord {
	claims: Claims
	created_at: string
}

export type Sessions = ReturnType<typeof sessionsOf>

export const SESSION_S = 12 * 3600
const COOKIE_BYTES = 32
const COOKIE_FORM = /^[A-Za-z0-9_-]{43}$/
const LIMIT = 10_000
/** So that nobody uses up the places of others. */
const LIMIT_PER_PERSON = 32
const CLAIMS_CHARACTERS = 16_384

const all = ['auth', 'session'] as const
const key = (id: string) => [...all, id] as const

export function sessionsOf({ store }: Pick<Context, 'store'>) {
	/** Only creation makes the table grow, so creation also removes sessions that have ended. */
	const makeRoom = async ({ iss, sub }: Claims): Promise<void> => {
		let kept = 0
		const own: { key: Key; created_at: string }[] = []
		for await (const { key: at, value } of store.list<SessionRecord>(all)) {
			if (hasEnded(value)) {
				await store.delete(at)
				continue
			}
			kept++
			if (value.claims.iss === iss && value.claims.sub === sub) own.push({ key: at, created_at: value.created_at })
		}
		const newestFirst = own.toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1))
		for (const { key: at } of newestFirst.slice(LIMIT_PER_PERSON - 1)) {
			await store.delete(at)
			kept--
		}
		if (kept >= LIMIT) throw new Fault('unavailable', `${LIMIT} people are signed in, which is the limit`)
	}
	const get = async (id: string): Promise<Session | undefined> => {
		const record = (await store.get<SessionRecord>(key(id)))?.value
		return record && !hasEnded(record) ? { id, claims: record.claims } : undefined
	}
	return {
		get,
		/**
		 * Returns the cookie. Ends the oldest sessions of a person who has more than 32. Throws `unavailable` if 10,000 sessions are
		 * open, and `invalid_request` if the claims have more than 16,384 characters.
		 */
		async create(claims: Claims): Promise<string> {
			if (JSON.stringify(claims).length > CLAIMS_CHARACTERS)
				throw new Fault('invalid_request', `your ID token has more than ${CLAIMS_CHARACTERS} characters of claims`)
			await makeRoom(claims)
			const cookie = randomText(COOKIE_BYTES)
			const exp = Math.floor(Date.now() / 1000) + SESSION_S
			const record: SessionRecord = { claims: { ...claims, exp }, created_at: now() }
			await store.put(key(idOf(cookie)), record)
			return cookie
		},
		/** Undefined for a session that has ended. */
		find: async (cookie: string): Promise<Session | undefined> =>
			COOKIE_FORM.test(cookie) ? get(idOf(cookie)) : undefined,
		end: (id: string): Promise<void> => store.delete(key(id)),
	}
}

function hasEnded({ claims }: SessionRecord): boolean {
	return claims.exp * 1000 <= Date.now()
}

function idOf(cookie: string): string {
	return hash('sha256', cookie)
}
