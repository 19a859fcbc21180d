/** Resolving names without letting slow name servers stop the whole process. */
import { lookup as systemLookup } from 'node:dns/promises'
import { Fault } from '../errors.ts'
import { openSemaphore } from '../util/semaphore.ts'

export interface Answer {
	address: string
	/** 4 or 6. */
	family: number
}

/** All addresses of a name, in the order in which to try them. Throws if there are none. */
export type Lookup = (host: string) => Promise<Answer[]>

/** A lookup holds one of the four threads that files and the store need too, for as long as a name server is silent. */
const SIDE_BY_SIDE = 2
const MAX_WAITING = 256
const places = openSemaphore(SIDE_BY_SIDE)
let waiting = 0

export const lookup: Lookup = async (host) => {
	if (waiting >= MAX_WAITING)
		throw new Fault('fetch_failed', `${MAX_WAITING} names wait to be resolved already; try again later`)
	waiting++
	const release = await places.take()
	waiting--
	try {
		return await systemLookup(host, { all: true })
	} finally {
		release()
	}
}
