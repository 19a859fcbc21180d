/** Requests that wait or stay open: how many there may be, whose they are, and that they end with their caller's authority. */
import { Callers } from './callers.ts'
import type { Caller } from './callers.ts'
import { Fault } from '../errors.ts'

export interface OpenRequest<Who extends Caller> {
	readonly credentials: Who
	/** It must leave. */
	end(why: Fault): void
	/** Twice a second; `now` by the clock of `performance.now`. */
	beat?(now: number): void
}

export interface OpenRequestsOptions<Who extends Caller> {
	/** How many there may be at the same time. */
	limit: number
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
	readonly #callers = new Callers<Who, One>()
	#timer: NodeJS.Timeout | undefined
	#empty: PromiseWithResolvers<void> | undefined

	constructor(options: OpenRequestsOptions<Who>) {
		this.#options = options
	}

	/** Throws `unavailable` if there are too many. */
	check(): void {
		const { limit, what } = this.#options
		if (this.#open.size >= limit) throw unavailable(`${limit} ${what}, which is the limit; try again later`)
	}

	/** Throws `unavailable` if there are too many. */
	enter(one: One): void {
		this.check()
		this.#open.add(one)
		this.#callers.add(one.credentials, one)
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	/** May be called again. */
	leave(one: One): void {
		if (!this.#open.delete(one)) return
		this.#callers.remove(one.credentials, one)
		if (this.#open.size > 0) return
		clearInterval(this.#timer)
		this.#timer = undefined
		this.#empty?.resolve()
	}

	/** Ends all, each with an `unavailable` of its own. Settles once they have left. */
	async end(why: string): Promise<void> {
		for (const one of this.#open) one.end(unavailable(why)) // its answer is written into the fault
		if (this.#open.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	[Symbol.iterator](): Iterator<One> {
		return this.#open.values()
	}

	#beat(): void {
		void this.#callers.check(this.#options.check, (one) => one.end(revoked()))
		const now = performance.now()
		for (const one of this.#open) one.beat?.(now)
	}
}

export function revoked(): Fault {
	return new Fault('unauthorized', 'the token is no longer valid', { headers: { 'www-authenticate': 'Bearer' } })
}

/** With the seconds after which a client may try again. */
export function unavailable(message: string): Fault {
	return new Fault('unavailable', message, { headers: { 'retry-after': String(RETRY_AFTER_S) } })
}
