/** All that waits or stays open: how many there may be, whose they are, and that they end with their caller's authority. */
import { Callers } from '../../core/callers.ts'
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'

export interface Guest {
	readonly credentials: Credentials
	/** It must leave. */
	end(why: Fault): void
	/** Twice a second; `now` by the clock of `performance.now`. */
	beat?(now: number): void
}

export interface RoomOptions {
	limit: number
	/** Such as `WebSockets are open`. */
	what: string
}

/** Twice in the second within which the guests of a caller that is no longer good must leave. */
const BEAT_MS = 500
const RETRY_AFTER_S = 5

export class Room<One extends Guest> implements Iterable<One> {
	readonly #ctx: Pick<Context, 'use'>
	readonly #options: RoomOptions
	readonly #guests = new Set<One>()
	readonly #callers = new Callers<Credentials, One>()
	#timer: NodeJS.Timeout | undefined
	#empty: PromiseWithResolvers<void> | undefined

	constructor(ctx: Pick<Context, 'use'>, options: RoomOptions) {
		this.#ctx = ctx
		this.#options = options
	}

	/** Throws `unavailable` where it is full. */
	check(): void {
		const { limit, what } = this.#options
		if (this.#guests.size < limit) return
		throw new Fault('unavailable', `${limit} ${what}, which is the limit; try again later`, {
			headers: { 'retry-after': String(RETRY_AFTER_S) },
		})
	}

	/** Throws `unavailable` where it is full. */
	enter(guest: One): void {
		this.check()
		this.#guests.add(guest)
		this.#callers.add(guest.credentials, guest)
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	leave(guest: One): void {
		if (!this.#guests.delete(guest)) return
		this.#callers.remove(guest.credentials, guest)
		if (this.#guests.size > 0) return
		clearInterval(this.#timer)
		this.#timer = undefined
		this.#empty?.resolve()
	}

	/** `why`: a new one for each of them, since its answer is written into it. Settles once all have left. */
	async end(why: () => Fault): Promise<void> {
		for (const guest of this.#guests) guest.end(why())
		if (this.#guests.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	[Symbol.iterator](): Iterator<One> {
		return this.#guests.values()
	}

	#beat(): void {
		void this.#callers.check(
			async (credentials) => this.#ctx.use('auth').check(credentials),
			(guest) => guest.end(revoked()),
		)
		const now = performance.now()
		for (const guest of this.#guests) guest.beat?.(now)
	}
}

export function revoked(): Fault {
	return new Fault('unauthorized', 'the token is no longer valid', { headers: { 'www-authenticate': 'Bearer' } })
}
