/** Resolves names with the system's resolver, a few at a time; owners take turns. */
import { lookup as systemCall } from 'node:dns/promises'
import { Fault } from '../errors.ts'
import { openPace } from '../util/pace.ts'
import { openSemaphore } from '../util/semaphore.ts'
import { reserveOf, Shares } from '../util/shares.ts'

export interface ResolvedAddress {
	address: string
	/** 4 or 6. */
	family: number
}

/** All addresses of a name, in the order to try them. Throws if the name has no address. `owner`: in whose share it counts. */
export type Lookup = (host: string, owner?: string) => Promise<ResolvedAddress[]>

/** Limit of waiting lookups of one owner; that of all owners is a quarter more. */
const MAX_WAITING = 256

/** Limit of one owner's lookups: local names resolve so fast that lookups could use all of the gateway's time. */
const PER_SECOND = 100

/**
 * `owner`: in whose share a lookup counts, such as the uid of an agent; absent for the gateway itself. While a name server does
 * not answer, a lookup holds one of the four threads that files and the store need too. So at most two lookups run at once, and
 * a third one of an owner without a running lookup.
 */
export function openSystemLookup(
	lookup = async (host: string): Promise<ResolvedAddress[]> => systemCall(host, { all: true }),
): Lookup {
	const places = openSemaphore(2, { reserve: 1 })
	const pace = openPace(PER_SECOND)
	const waiting = new Shares(
		() => MAX_WAITING,
		() => reserveOf(MAX_WAITING),
	)
	return async (host, owner = '') => {
		if (!waiting.may(owner)) {
			const message = `${waiting.heldBy(owner)} names that this agent asked for wait to be resolved already; try again later`
			throw new Fault('fetch_failed', message)
		}
		waiting.add(owner)
		if (owner) await pace(owner)
		const release = await places.acquire({ owner }).finally(() => waiting.remove(owner))
		try {
			return await lookup(host)
		} finally {
			release()
		}
	}
}

export const systemLookup = openSystemLookup()
