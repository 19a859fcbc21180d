/**
 * Schedules the reading of bodies. It is not known yet whether they are signed, so the number of bodies read concurrently is
 * bounded, and so is the queue of waiting requests. A sender that is slow, or has sent less, gives way to others: blocking a
 * slot costs a sender as much as a delivery.
 */
import Boom from '@hapi/boom'
import type { WebhookSettings } from './contract.ts'
import { tryLater } from '../shared/try-later.ts'

/** A slot to read a body. Call `leave` in any case, to free it. */
export interface BodyReading {
	/** Aborts if it must give way; the reason is the error for the sender. */
	signal: AbortSignal
	leave(): void
}

interface Request {
	id: string
	/** When it arrived, or when reading its body began, in milliseconds of the monotonic clock. */
	since: number
	brought(): number
	/** Ends the request, with 408. */
	giveWay(): void
}

interface InLine extends Request {
	admit(): void
	refuse(error: Error): void
}

/** A body that takes longer gives way if others wait. */
const SLOW_MS = 1_000
/** Limit of queued requests of all webhooks. For each, Node buffers up to 128 KiB. */
const LINE = 512
const LONGEST_WAIT_MS = 10_000
/** Interval of comparing queued requests with those being read. */
const RECHECK_MS = 50

export function openReaders(
	{
		max_concurrent,
		max_concurrent_per_webhook,
	}: Pick<WebhookSettings, 'max_concurrent' | 'max_concurrent_per_webhook'>,
	clock: () => number = () => performance.now(),
	lineLimit: number = LINE,
) {
	const reading = tableOf<Request>()
	const line = tableOf<InLine>()
	let timer: NodeJS.Timeout | undefined

	/** No webhook has more slots than are free: however many are under attack, the next one gets a slot. */
	const hasPlace = (id: string): boolean =>
		reading.count(id) < Math.min(max_concurrent_per_webhook, max_concurrent - reading.size)

	/** True if there is a slot, possibly that of a request that gives way. */
	const makePlace = (id: string, brought: number, now: number): boolean => {
		if (hasPlace(id)) return true
		const own = reading.count(id)
		const isFull = own >= max_concurrent_per_webhook
		const richer = (): Request[] => [...reading.all()].filter((one) => reading.count(one.id) > own)
		const other = yielding(reading.of(id), brought, now) ?? (isFull ? undefined : yielding(richer(), brought, now))
		other?.giveWay()
		return other !== undefined
	}
	const read = (id: string, brought: () => number): BodyReading => {
		const controller = new AbortController()
		const leave = (): void => {
			if (reading.delete(request)) admitFirst()
		}
		const request: Request = {
			id,
			since: clock(),
			brought,
			giveWay() {
				reading.delete(request) // without admitting others: the slot goes to the request that displaced it
				controller.abort(tooSlow())
			},
		}
		reading.add(request)
		return { signal: controller.signal, leave }
	}
	/** A slot is free: it goes to the first queued request that may have it. */
	const admitFirst = (): void => {
		for (const request of line.all()) if (hasPlace(request.id)) return request.admit()
	}
	/** Periodic: readers may have become slow, queued requests may have received more bytes, or waited too long. */
	const recheck = (): void => {
		const now = clock()
		for (const request of line.all()) {
			if (makePlace(request.id, request.brought(), now)) request.admit()
			else if (now - request.since > LONGEST_WAIT_MS) request.refuse(busy())
		}
		if (line.size > 0) return
		clearInterval(timer)
		timer = undefined
	}
	const join = (id: string, brought: () => number): Promise<BodyReading> => {
		const { promise, resolve, reject } = Promise.withResolvers<BodyReading>()
		const request: InLine = {
			id,
			since: clock(),
			brought,
			admit() {
				line.delete(request)
				resolve(read(id, brought))
			},
			refuse(error) {
				line.delete(request)
				reject(error)
			},
			giveWay: () => request.refuse(tooSlow()),
		}
		line.add(request)
		// Not of the plugin's own timers: requests of a replaced instance still wait in this queue.
		timer ??= setInterval(recheck, RECHECK_MS).unref()
		return promise
	}
	const busy = (): Error =>
		tryLater(
			'rate_limited',
			`this webhook is waiting for other bodies (webhooks.max_concurrent_per_webhook: ${max_concurrent_per_webhook}, webhooks.max_concurrent: ${max_concurrent})`,
			1,
		)

	return {
		/**
		 * Settles when the body of a request to the webhook `id` may be read. `brought`: number of its bytes received so far.
		 * Rejects with `rate_limited` if the queue is full or does not move, with 408 if others go first.
		 */
		async wait(id: string, brought: () => number): Promise<BodyReading> {
			const now = clock()
			if (makePlace(id, brought(), now)) return read(id, brought)
			if (line.count(id) >= lineLimit - line.size) {
				const other = leastOf(line.of(id), brought())
				if (!other) throw busy()
				other.giveWay()
			}
			return join(id, brought)
		},
	}
}

/** The slow request that has been read for longest; otherwise the one that has sent least, if that is less. Oldest first. */
function yielding(among: Iterable<Request>, brought: number, now: number): Request | undefined {
	for (const request of among) if (now - request.since > SLOW_MS) return request
	return leastOf(among, brought)
}

function leastOf(among: Iterable<Request>, brought: number): Request | undefined {
	let least: Request | undefined
	for (const request of among) if (request.brought() < (least?.brought() ?? brought)) least = request
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
