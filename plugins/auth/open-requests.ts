import { Fault } from '../../core/errors.ts'
import { Counts } from '../../core/util/counts.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Auth, Credentials, OpenRequest, OpenRequests, OpenRequestsOptions } from './contract.ts'

/** Twice in the second within which the requests of a caller that is no longer valid must end. */
const BEAT_MS = 500
const RETRY_AFTER_S = 5

/** One token may have this many times as many as are free: four fifths of a table that nobody else uses. */
const SHARE = 4

/** By the id of a caller that has a limit: its open streams in all tables, also in those of an instance that is ending. */
const streamsOf = new Counts()

/** `check`: whether what is open for this caller may stay open. A rejection counts as a no. */
export class OpenRequestTable<One extends OpenRequest> implements OpenRequests<One> {
	readonly #options: OpenRequestsOptions
	readonly #check: Auth['check']
	readonly #open = new Set<One>()
	/** By caller, so that ten thousand streams of one token need one check. */
	readonly #callers = new Map<string, Set<One>>()
	/** By token. A token may have several groups of `#callers`. */
	readonly #held = new Counts()
	#timer: NodeJS.Timeout | undefined
	#checking = false
	#empty: PromiseWithResolvers<void> | undefined

	constructor(options: OpenRequestsOptions, check: Auth['check']) {
		this.#options = options
		this.#check = check
	}

	get size(): number {
		return this.#open.size
	}

	mustHaveRoom({ actor, token_id, streams = Infinity }: Credentials, taken = this.size): void {
		const { limit = Infinity, what, areStreams } = this.#options
		if (taken >= limit)
			throw tryLater('unavailable', `${limit} ${what}, which is the limit; try again later`, RETRY_AFTER_S)
		const held = token_id === null ? 0 : this.#held.of(token_id)
		if (held >= SHARE * (limit - taken))
			throw tooMany(`${held} of ${limit} ${what} with your token, and the rest are for other callers; try again later`)
		if (areStreams && actor.id !== undefined && streamsOf.of(actor.id) >= streams)
			throw tooMany(`your token has ${streams} streams open, which is its limit; close one first`)
	}

	enter(one: One): void {
		this.mustHaveRoom(one.credentials)
		this.#open.add(one)
		this.#count(one, 1)
		const key = keyOf(one.credentials)
		const group = this.#callers.get(key)
		if (group) group.add(one)
		else this.#callers.set(key, new Set([one]))
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	leave(one: One): boolean {
		if (!this.#open.delete(one)) return false
		this.#count(one, -1)
		const key = keyOf(one.credentials)
		const group = this.#callers.get(key)
		group?.delete(one)
		if (group?.size === 0) this.#callers.delete(key)
		if (this.size > 0) return true
		clearInterval(this.#timer)
		this.#timer = undefined
		this.#empty?.resolve()
		return true
	}

	async end(why: string): Promise<void> {
		for (const one of this.#open) one.end(tryLater('unavailable', why, RETRY_AFTER_S)) // its answer is written into the fault
		if (this.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	[Symbol.iterator](): Iterator<One> {
		return this.#open.values()
	}

	#count({ credentials: { actor, token_id, streams } }: One, by: 1 | -1): void {
		if (token_id !== null) this.#held.add(token_id, by)
		if (this.#options.areStreams && streams !== undefined && actor.id !== undefined) streamsOf.add(actor.id, by)
	}

	#beat(): void {
		if (!this.#checking) {
			this.#checking = true
			void this.#endRevoked().finally(() => (this.#checking = false))
		}
		const now = performance.now()
		for (const one of this.#open) one.beat?.(now)
	}

	async #endRevoked(): Promise<void> {
		for (const group of this.#callers.values()) {
			const [first] = group
			const isValid = first && (await this.#check(first.credentials).catch(() => false))
			if (!isValid) for (const one of group) one.end(noLongerValid())
		}
	}
}

export function noLongerValid(): Fault {
	return new Fault('unauthorized', 'the token is no longer valid', { headers: { 'www-authenticate': 'Bearer' } })
}

function tooMany(message: string): Fault {
	return tryLater('rate_limited', message, RETRY_AFTER_S)
}

/** The same for those whose `check` has the same result. */
function keyOf({ token_id, local, claims, rules, session = '' }: Credentials): string {
	return `${local ? 'local' : 'remote'} ${token_id ?? ''} ${claims ? JSON.stringify([claims, rules]) : ''} ${session}`
}
