/**
 * Schedules the reading of bodies. Their signatures are not verified yet, so the number of concurrently read bodies and the queue
 * of waiting requests are bounded. A request that is slow, or has sent less than others, yields its slot. So holding a slot costs
 * a sender as much as a delivery.
 */
import Boom from '@hapi/boom'
import type { WebhookSettings } from './contract.ts'
import { tryLater } from '../shared/try-later.ts'

/** A slot for reading a body. The caller must always call `leave`, which frees it. */
export interface BodyReading {
	/** Aborts if the request must yield; the reason is the error for the sender. */
	signal: AbortSignal
	leave(): void
}

interface Request {
	id: string
	/** When the request arrived, or when the reading of its body began, by the monotonic clock, in milliseconds. */
	since: number
	received(): number
	/** Ends the request with 408. */
	yield(): void
}

interface QueuedRequest extends Request {
	admit(): void
	refuse(error: Error): void
}

/** A body that takes longer yields if others wait. */
const SLOW_MS = 1_000
/** Limit of queued requests of all webhooks. For each, Node buffers up to 128 KiB. */
const QUEUE_LIMIT = 512
const MAX_WAIT_MS = 10_000
/** Interval at which queued requests are compared with those being read. */
const RECHECK_MS = 50

export function openReaders(
	{
		max_concurrent,
		max_concurrent_per_webhook,
	}: Pick<WebhookSettings, 'max_concurrent' | 'max_concurrent_per_webhook'>,
	clock: () => number = () => performance.now(),
	queueLimit: number = QUEUE_LIMIT,
) {
	const reading = tableOf<Request>()
	const queue = tableOf<QueuedRequest>()
	let timer: NodeJS.Timeout | undefined

	/** A webhook never has more slots than are free, so that there is always one for the next webhook, even under attack. */
	const hasSlot = (id: string): boolean =>
		reading.count(id) < Math.min(max_concurrent_per_webhook, max_concurrent - reading.size)

	/** Returns true if there is a slot, possibly that of a request that yields. */
	const makeSlot = (id: string, received: number, now: number): boolean => {
		if (hasSlot(id)) return true
		const own = reading.count(id)
		const isFull = own >= max_concurrent_per_webhook
		const withMoreSlots = (): Request[] => [...reading.all()].filter(({ id }) => reading.count(id) > own)
		const other =
			mustYield(reading.of(id), received, now) ?? (isFull ? undefined : mustYield(withMoreSlots(), received, now))
		other?.yield()
		return other !== undefined
	}
	const read = (id: string, received: () => number): BodyReading => {
		const controller = new AbortController()
		const leave = (): void => {
			if (reading.delete(request)) admitFirst()
		}
		const request: Request = {
			id,
			since: clock(),
			received,
			yield() {
				reading.delete(request) // without admitting others: the slot goes to the request that displaced it
				controller.abort(tooSlow())
			},
		}
		reading.add(request)
		return { signal: controller.signal, leave }
	}
	/** Gives a free slot to the first queued request that may have it. */
	const admitFirst = (): void => {
		for (const request of queue.all()) if (hasSlot(request.id)) return request.admit()
	}
	/** Runs periodically: requests may have become slow, received more bytes, or waited too long. */
	const recheck = (): void => {
		const now = clock()
		for (const request of queue.all()) {
			if (makeSlot(request.id, request.received(), now)) request.admit()
			else if (now - request.since > MAX_WAIT_MS) request.refuse(busy())
		}
		if (queue.size > 0) return
		clearInterval(timer)
		timer = undefined
	}
	const enqueue = (id: string, received: () => number): Promise<BodyReading> => {
		const { promise, resolve, reject } = Promise.withResolvers<BodyReading>()
		const request: QueuedRequest = {
			id,
			since: clock(),
			received,
			admit() {
				queue.delete(request)
				resolve(read(id, received))
			},
			refuse(error) {
				queue.delete(request)
				reject(error)
			},
			yield: () => request.refuse(tooSlow()),
		}
		queue.add(request)
		// Not `ctx.every`, since requests of a replaced instance still wait in this queue.
		timer ??= setInterval(recheck, RECHECK_MS).unref()
		return promise
	}
	const busy = (): Error =>
		tryLater(
			'rate_limited',
			`too many bodies are being received (webhooks.max_concurrent_per_webhook: ${max_concurrent_per_webhook}, webhooks.max_concurrent: ${max_concurrent})`,
			1,
		)

	return {
		/**
		 * Settles when the body of a request to the webhook `id` may be read. `received` returns the number of bytes so far. Throws
		 * `rate_limited` if the queue is full or the wait takes 10 s, and 408 if the request must yield.
		 */
		async wait(id: string, received: () => number): Promise<BodyReading> {
			const now = clock()
			if (makeSlot(id, received(), now)) return read(id, received)
			if (queue.count(id) >= queueLimit - queue.size) {
				const other = leastOf(queue.of(id), received())
				if (!other) throw busy()
				other.yield()
			}
			return enqueue(id, received)
		},
	}
}

/** The oldest slow request; otherwise the one that has sent least, if less than `received`. `among`: oldest first. */
function mustYield(among: Iterable<Request>, received: number, now: number): Request | undefined {
	for (const request of among) if (now - request.since > SLOW_MS) return request
	return leastOf(among, received)
}

function leastOf(among: Iterable<Request>, received: number): Request | undefined {
	let least: Request | undefined
	for (const request of among) if (request.received() < (least?.received() ?? received)) least = request
	return least
}

function tooSlow(): Error {
	return Boom.clientTimeout('the body arrived too slowly while others were waiting')
}

/** Requests in order of arrival, of all webhooks and of each. */
function tableOf<T extends Request>() {
	const all = new Set<T>()
	const byId = new Map<string, Set<T>>()
	return {
		add(request: T): void {
			all.add(request)
			const own = byId.get(request.id)
			if (own) own.add(request)
			else byId.set(request.id, new Set([request]))
		},
		delete(request: T): boolean {
			const own = byId.get(request.id)
			own?.delete(request)
			if (own?.size === 0) byId.delete(request.id)
			return all.delete(request)
		},
		all: (): Iterable<T> => all,
		of: (id: string): Iterable<T> => byId.get(id) ?? [],
		count: (id: string): number => byId.get(id)?.size ?? 0,
		get size() {
			return all.size
		},
	}
}
