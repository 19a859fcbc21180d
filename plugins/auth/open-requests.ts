import type { Fault } from '../../core/errors.ts'
import { Counts } from '../../core/util/counts.ts'
import { tryLater } from '../shared/try-later.ts'
import type { Auth, Credentials, OpenRequest, OpenRequests, OpenRequestsOptions } from './contract.ts'
import { unauthorized } from './unauthorized.ts'

/** The requests of a caller that is no longer valid must end within one second. */
const BEAT_MS = 500
const RETRY_AFTER_S = 5

/** A token may have at most four times as many requests open as places are free. So it can fill four fifths of an empty table. */
const SHARE = 4

/** Open streams by caller, for callers with a limit. For all tables, also those of an instance that is ending. */
const streamsOf = new Counts()

/** As `Auth.openRequests`. `check`: whether a caller is still valid. A rejection counts as false. */
export class OpenRequestTable<One extends OpenRequest> implements OpenRequests<One> {
	readonly #options: OpenRequestsOptions
	readonly #check: Auth['check']
	readonly #open = new Set<One>()
	/** Open requests by caller, so that ten thousand streams of one token need one check. */
	readonly #callers = new Map<string, Set<One>>()
	/** Open requests by token. A token may have several entries in `#callers`. */
	readonly #perToken = new Counts()
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
		const own = token_id === null ? 0 : this.#perToken.of(token_id)
		if (own >= SHARE * (limit - taken))
			throw tooMany(`${own} of ${limit} ${what} with your token, and the rest are for other callers; try again later`)
		if (areStreams && actor.id !== undefined && streamsOf.of(actor.id) >= streams)
			throw tooMany(`your token has ${streams} streams open, which is its limit; close one first`)
	}

	enter(request: One): void {
		this.mustHaveRoom(request.credentials)
		this.#open.add(request)
		this.#count(request, 1)
		const key = keyOf(request.credentials)
		const group = this.#callers.get(key)
		if (group) group.add(request)
		else this.#callers.set(key, new Set([request]))
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	leave(request: One): boolean {
		if (!this.#open.delete(request)) return false
		this.#count(request, -1)
		const key = keyOf(request.credentials)
		const group = this.#callers.get(key)
		group?.delete(request)
		if (group?.size === 0) this.#callers.delete(key)
		if (this.size > 0) return true
		clearInterval(this.#timer)
		this.#timer = undefined
		this.#empty?.resolve()
		return true
	}

	async end(why: string): Promise<void> {
		// A fault for each request, since its response is written into the fault.
		for (const request of this.#open) request.end(tryLater('unavailable', why, RETRY_AFTER_S))
		if (this.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	[Symbol.iterator](): Iterator<One> {
		return this.#open.values()
	}

	#count({ credentials: { actor, token_id, streams } }: One, by: 1 | -1): void {
		if (token_id !== null) this.#perToken.add(token_id, by)
		if (this.#options.areStreams && streams !== undefined && actor.id !== undefined) streamsOf.add(actor.id, by)
	}

	#beat(): void {
		if (!this.#checking) {
			this.#checking = true
			void this.#endRevoked().finally(() => (this.#checking = false))
		}
		const now = performance.now()
		for (const request of this.#open) request.beat?.(now)
	}

	async #endRevoked(): Promise<void> {
		for (const group of this.#callers.values()) {
			const [first] = group
			const isValid = first && (await this.#check(first.credentials).catch(() => false))
			if (!isValid) for (const request of group) request.end(noLongerValid())
		}
	}
}

export function noLongerValid(): Fault {
	return unauthorized('the token is no longer valid')
}

function tooMany(message: string): Fault {
	return tryLater('rate_limited', message, RETRY_AFTER_S)
}

/** Credentials with the same key have the same result of `check`. */
function keyOf({ token_id, local, claims, rules, session = '' }: Credentials): string {
	return `${local ? 'local' : 'remote'} ${token_id ?? ''} ${claims ? JSON.stringify([claims, rules]) : ''} ${session}`
}
