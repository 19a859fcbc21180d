/** Requests that wait or stay open: how many there may be, whose they are, and that they end with their caller's authority. */
import { Fault } from '../errors.ts'

/** The part of a caller that identifies it. */
export interface Caller {
	/** Null for a local caller without a token. */
	token_id: string | null
	local: boolean
}

export interface OpenRequest<Who extends Caller> {
	readonly credentials: Who
	/** It must leave. */
	end(why: Fault): void
	/** Twice a second; `now` by the clock of `performance.now`. */
	beat?(now: number): void
}

export interface OpenRequestsOptions<Who extends Caller> {
	/** How many there may be at the same time. Absent: their owner limits them. */
	limit?: number
	/** Such as `WebSockets are open`. */
	what: string
	/** Whether what is open for this caller may stay open. A rejection counts as a no. */
	check: (caller: Who) => Promise<boolean>
}

/** Twice in the second within which the requests of a caller that is no longer good must end. */
const BEAT_MS = 500
const RETRY_AFTER_S = 5

export class OpenRequests<Who extends Caller, One extends OpenRequest<Who>> implements Iterable<One> {
	readonly #options: OpenRequestsOptions<Who>
	readonly #open = new Set<One>()
	/** By caller, so that ten thousand streams of one token need one check. */
	readonly #callers = new Map<string, Set<One>>()
	#timer: NodeJS.Timeout | undefined
	#checking = false
	#empty: PromiseWithResolvers<void> | undefined

	constructor(options: OpenRequestsOptions<Who>) {
		this.#options = options
	}

	get size(): number {
		return this.#open.size
	}

	/** Throws `unavailable` if there are too many. */
	check(): void {
		const { limit = Infinity, what } = this.#options
		if (this.size >= limit) throw unavailable(`${limit} ${what}, which is the limit; try again later`)
	}

	/** Throws `unavailable` if there are too many. */
	enter(one: One): void {
		this.check()
		this.#open.add(one)
		const key = keyOf(one.credentials)
		const group = this.#callers.get(key)
		if (group) group.add(one)
		else this.#callers.set(key, new Set([one]))
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	/** False if it has left before. */
	leave(one: One): boolean {
		if (!this.#open.delete(one)) return false
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

	/** Ends all, each with an `unavailable` of its own. Settles once they have left. */
	async end(why: string): Promise<void> {
		for (const one of this.#open) one.end(unavailable(why)) // its answer is written into the fault
		if (this.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	[Symbol.iterator](): Iterator<One> {
		return this.#open.values()
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
			const isGood = first && (await this.#options.check(first.credentials).catch(() => false))
			if (!isGood) for (const one of group) one.end(revoked())
		}
	}
}

export function revoked(): Fault {
	return new Fault('unauthorized', 'the token is no longer valid', { headers: { 'www-authenticate': 'Bearer' } })
}

/** With the seconds after which a client may try again. */
export function unavailable(message: string): Fault {
	return new Fault('unavailable', message, { headers: { 'retry-after': String(RETRY_AFTER_S) } })
}

function keyOf({ token_id, local }: Caller): string {
	return `${local ? 'local' : 'remote'} ${token_id ?? ''}`
}
