/** Requests under way: how many there may be, and that they end with their caller's authority. */
import { Callers } from '../../core/callers.ts'
import { Fault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Credentials } from '../auth/contract.ts'

export interface OpenRequest {
	readonly credentials: Credentials
	/** It must end. */
	end(why: Fault): void
	/** Twice a second; `now` by the clock of `performance.now`. */
	beat?(now: number): void
}

/** Twice in the second within which the requests of a caller that is no longer good must end. */
const BEAT_MS = 500
const RETRY_AFTER_S = '5'

export class OpenRequests {
	readonly #ctx: Pick<Context, 'use'>
	readonly #limit: number
	readonly #open = new Set<OpenRequest>()
	readonly #callers = new Callers<Credentials, OpenRequest>()
	#timer: NodeJS.Timeout | undefined
	#empty: PromiseWithResolvers<void> | undefined

	constructor(ctx: Pick<Context, 'use'>, limit: number) {
		this.#ctx = ctx
		this.#limit = limit
	}

	/** Throws `unavailable` where there are too many. */
	enter(one: OpenRequest): void {
		if (this.#open.size >= this.#limit) {
			throw new Fault('unavailable', `${this.#limit} requests are under way, which is the limit; try again later`, {
				headers: { 'retry-after': RETRY_AFTER_S },
			})
		}
		this.#open.add(one)
		this.#callers.add(one.credentials, one)
		this.#timer ??= setInterval(() => this.#beat(), BEAT_MS)
	}

	leave(one: OpenRequest): void {
		if (!this.#open.delete(one)) return
		this.#callers.remove(one.credentials, one)
		if (this.#open.size > 0) return
		clearInterval(this.#timer)
		this.#timer = undefined
		this.#empty?.resolve()
	}

	/** Ends all. Settles once they have left. */
	async end(): Promise<void> {
		for (const one of this.#open) one.end(stopping())
		if (this.#open.size === 0) return
		this.#empty ??= Promise.withResolvers()
		await this.#empty.promise
	}

	#beat(): void {
		void this.#callers.check(
			async (credentials) => this.#ctx.use('auth').check(credentials),
			(one) => one.end(lost()),
		)
		const now = performance.now()
		for (const one of this.#open) one.beat?.(now)
	}
}

/** A new one for each request: the answer is written into it. */
function stopping(): Fault {
	return new Fault('unavailable', 'the gateway is stopping', { headers: { 'retry-after': RETRY_AFTER_S } })
}

function lost(): Fault {
	return new Fault('unauthorized', 'the token is no longer valid', { headers: { 'www-authenticate': 'Bearer' } })
}
