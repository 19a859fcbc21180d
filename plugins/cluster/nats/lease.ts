/**
 * The lease that decides which gateway works on the cluster's data: one at a time, since the store's checks are exact only for a
 * single writer. The others wait for it. Two mechanisms keep a former holder from writing, such as one whose machine was suspended:
 *
 * - its own clock: it neither reads nor writes once its last renewal is older than `holdMs`, and others take the lease only
 *   when it was not renewed for `takeMs`, which is longer;
 * - the servers: they refuse messages under the epoch of an earlier holder (streams.ts).
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, isFault, messageOf } from '../../../core/errors.ts'
import type { Logger } from '../../../core/log/log.ts'
import type { GatewayAddress, ObservedLease, Tenure } from '../../../core/store/ports.ts'
import { newId } from '../../../core/util/ids.ts'
import { hasNoResponder, textOfError, unreachable } from './client.ts'
import type { Answer, Client, Stored } from './client.ts'
import { emptied } from './emptied.ts'
import { removedStream, replacing, setEpoch, WRONG_SEQUENCE } from './streams.ts'
import type { Names } from './streams.ts'

export interface LeaseTimes {
	/** Between two renewals. */
	renewMs: number
	/** How long a renewal permits reading and writing. */
	holdMs: number
	/** A lease that was not renewed for this long has expired. Longer than `holdMs`. */
	takeMs: number
}

const leaseTimes: LeaseTimes = { renewMs: 1_000, holdMs: 12_000, takeMs: 15_000 }

export interface LeaseOptions {
	client: Client
	names: Names
	replicas: number
	/** The name of this gateway, for the logs of waiting ones. */
	holder: string
	times?: LeaseTimes | undefined
	/** Identifies the home whose lock this process holds: an earlier holder with the same home is dead. */
	home?: string | undefined
	/** Ends the wait. */
	signal?: AbortSignal | undefined
	/**
	 * Called each time the lease is read, four times a second, while another gateway holds it; and once with null, when this gateway
	 * takes it after that. An error thrown by it ends the wait.
	 */
	onLeaseObserved?: ((found: ObservedLease | null) => void | Promise<void>) | undefined
	log?: Logger | undefined
}

export interface Lease {
	/** The number of this holder; each later holder has a higher one. */
	readonly epoch: number
	readonly tenure: Tenure
	/** Throws `unavailable` unless this gateway certainly holds the lease at this moment. */
	mustHold(): void
	/** Null while this gateway holds the lease; otherwise why it may not read or write now. */
	trouble(): string | null
	/**
	 * Settles when another gateway has taken the lease, or when the cluster is back after this one could not renew the lease for too
	 * long: operations in progress were refused meanwhile. This process must then restart.
	 */
	readonly lost: Promise<Fault>
	isLost(): boolean
	/** The listener gets the position of each renewal in the stream of state. */
	onRenewed(listener: (seq: number) => void): void
	/** Forbids all reads and writes from now on. */
	lose(why: string): void
	/** Makes the streams accept this epoch again, if the lease is still held. For a holder whose epoch was refused. */
	reassert(): Promise<void>
	/** Releases the lease, so that another gateway can take it at once. */
	release(): Promise<void>
}

interface LeaseRecord {
	/** Null once it was released. */
	id: string | null
	holder: string
	home?: string | undefined
	/** The holder's address, under the name that 0.2.0 used; absent until it serves requests. */
	reach?: GatewayAddress | undefined
}

const POLL_MS = 250
const CONFIRM_MS = 1_000
/** Timeout of one renewal. A cluster without a leader elects one within 10 s, which must not end the lease. */
const ANSWER_MS = 1_500

/** Waits until no other gateway holds the lease, and takes it. Throws `unavailable` if the cluster does not answer. */
export async function takeLease(options: LeaseOptions): Promise<Lease> {
	const { client, names, replicas, holder, home, times = leaseTimes, log } = options
	const id = newId()
	const publish = async (expect: number, record: LeaseRecord): Promise<number | null> => {
		const headers = { ...replacing, 'Nats-Expected-Last-Subject-Sequence': expect }
		const answer = (await client.ask(names.lease, JSON.stringify(record), headers, ANSWER_MS)).json<
			Answer<{ seq: number }>
		>()
		if (!answer.error) return answer.seq
		if (answer.error.err_code === WRONG_SEQUENCE) return null
		throw unreachable(`the lease cannot be written: ${textOfError(answer.error)}`)
	}
	const epoch = await take({ ...options, times }, id, publish)
	await setEpoch(client, names, replicas, epoch)

	let seq = epoch
	let heldUntil = 0
	let lost: Fault | null = null
	/** Why the last renewal failed. */
	let failure: string | null = null
	let renewed: (seq: number) => void = () => {}
	let address: GatewayAddress | undefined
	const end = Promise.withResolvers<Fault>()
	const lose = (why: string): void => {
		lost ??= unreachable(why)
		end.resolve(lost)
	}
	/** Asks twice, since a starting server may answer before it has loaded all of its streams. */
	const checkStreams = async (): Promise<void> => {
		if ((await removedStream(client, names).catch(() => null)) === null) return
		await pause(CONFIRM_MS)
		const removed = await removedStream(client, names).catch(() => null)
		if (removed) lose(removed.message)
	}
	/** True once renewed. */
	const renew = async (): Promise<boolean> => {
		const sent = performance.now()
		try {
			const position = await publish(seq, { id, holder, home, reach: address })
			if (position === null) {
				const found = await client.last(names.state, names.lease)
				const record = found && recordOf(found)
				if (!found || record?.id !== id) {
					lose(
						record
							? `the gateway ${record.holder} has taken over the data of the cluster`
							: emptied(names.state, names).message,
					)
					return false
				}
				// The answer to an earlier renewal did not arrive.
				renewed(found.seq)
				seq = found.seq
				return false
			}
			seq = position
			renewed(position)
			if (heldUntil > 0 && performance.now() > heldUntil) {
				// No other gateway took it. Released, so that the next one need not wait.
				await publish(seq, { id: null, holder })
				lose(`the cluster is back, after more than ${times.holdMs / 1000} s`)
				return false
			}
			heldUntil = sent + times.holdMs
			failure = null
			return true
		} catch (error) {
			failure = messageOf(error)
			log?.debug({ err: error }, 'the lease could not be renewed yet')
			if (hasNoResponder(error)) await checkStreams()
			return false
		}
	}
	const patience = performance.now() + times.takeMs
	while (!(await renew())) {
		if (lost) throw lost
		if (performance.now() > patience)
			throw unreachable(`the cluster does not answer (${failure ?? 'it has no majority'})`)
		await pause(POLL_MS)
	}

	let timer: NodeJS.Timeout | undefined
	let renewing: Promise<unknown> = Promise.resolve()
	let isOver = false
	const later = (ms: number): void => {
		if (isOver || lost) return
		timer = setTimeout(next, ms)
		timer.unref()
	}
	const next = (): void => {
		timer = undefined
		renewing = renew().then((isRenewed) => later(isRenewed ? times.renewMs : POLL_MS))
	}
	later(times.renewMs)

	const trouble = (): string | null => {
		if (lost) return lost.message
		if (isOver) return 'the store is closed'
		if (performance.now() <= heldUntil) return null
		const why = client.trouble() ?? failure ?? 'it has no majority'
		return `the cluster has not answered for ${Math.round(times.holdMs / 1000)} s (${why})`
	}
	return {
		epoch,
		tenure: {
			id,
			advertise(wanted) {
				address = wanted
				if (timer === undefined) return
				clearTimeout(timer)
				next()
			},
		},
		mustHold() {
			const problem = trouble()
			if (problem !== null) throw unreachable(problem)
		},
		trouble,
		lost: end.promise,
		isLost: () => lost !== null,
		lose,
		onRenewed: (listener) => void (renewed = listener),
		async reassert() {
			if (lost || isOver) return
			await checkStreams()
			if (lost) return
			if (await renew()) await setEpoch(client, names, replicas, epoch)
		},
		async release() {
			isOver = true
			clearTimeout(timer)
			await renewing
			if (lost) return
			try {
				await publish(seq, { id: null, holder })
			} catch (error) {
				log?.warn(`the lease was not released, so another gateway takes over later: ${messageOf(error)}`)
			}
		},
	}
}

/** The recorded holder of the lease; null if it is free. */
export async function holderOf(
	client: Client,
	names: Names,
): Promise<Pick<ObservedLease, 'holder' | 'address'> | null> {
	const found = await client.last(names.state, names.lease)
	const record = found && recordOf(found)
	return record && record.id !== null ? { holder: record.holder, address: record.reach } : null
}

type Publish = (expect: number, record: LeaseRecord) => Promise<number | null>

async function take(
	{ client, names, holder, home, times, signal, onLeaseObserved, log }: LeaseOptions & { times: LeaseTimes },
	id: string,
	publish: Publish,
): Promise<number> {
	let seen: { seq: number; since: number; isAlive: boolean; id: string } | undefined
	let refusedSince: number | undefined
	for (;;) {
		signal?.throwIfAborted()
		const found = await client.last(names.state, names.lease).catch((error: unknown) => {
			// A gateway that already waits for another one also waits while the cluster is unavailable.
			if (seen === undefined || !isFault(error, 'unavailable')) throw error
			log?.debug({ err: error }, 'the lease cannot be read')
		})
		if (found === undefined && seen !== undefined) {
			await pause(POLL_MS, undefined, signal && { signal })
			continue
		}
		const record = found && recordOf(found)
		if (found && record?.id === id) return found.seq
		const held = record !== undefined && record.id !== null && (home === undefined || record.home !== home)
		const now = performance.now()
		if (held && found && record.id !== null) {
			if (found.seq !== seen?.seq) seen = { seq: found.seq, since: now, isAlive: seen?.id === record.id, id: record.id }
			await onLeaseObserved?.({ id: record.id, holder: record.holder, address: record.reach, isAlive: seen.isAlive })
		}
		if (!held || (seen && now - seen.since >= times.takeMs)) {
			try {
				const seq = await publish(found?.seq ?? 0, { id, holder, home })
				if (seq !== null) {
					if (seen) await onLeaseObserved?.(null)
					return seq
				}
			} catch (error) {
				// If only the answer was lost, the record shows who holds the lease.
				if (isFault(error, 'unavailable')) {
					if (refusedSince === undefined) log?.warn(`the lease cannot be taken yet: ${messageOf(error)}`)
					refusedSince ??= now
					if (seen === undefined && now - refusedSince >= times.takeMs) throw error
				}
				if (!held) await pause(POLL_MS, undefined, signal && { signal })
			}
		}
		if (held) await pause(POLL_MS, undefined, signal && { signal })
	}
}

function recordOf({ data }: Stored): LeaseRecord {
	try {
		return JSON.parse(data.toString('utf8')) as LeaseRecord
	} catch {
		throw new Fault('store_damaged', 'the record of the lease cannot be read: delete the message under its subject')
	}
}
