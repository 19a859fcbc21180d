/**
 * Bounds the memory of large bodies: all that are read, parsed or in use at the same time share one budget of bytes, whatever
 * generation of the gateway serves them. Bodies of routes within the ordinary limit are not counted.
 */
import type { Request } from '@hapi/hapi'
import { Fault } from '../errors.ts'

/** Of all large bodies together. Parsing takes several times as much for a moment. */
export const BUDGET_BYTES = 96 * 1024 * 1024
/** A body of a known size up to this is not counted. */
const SMALL_BYTES = 256 * 1024
/** Of all large bodies of one owner. */
const OWNER_BYTES = (BUDGET_BYTES * 4) / 5
/** For how long a request waits for its share, and how many may wait, of all and of one owner. */
const WAIT_MS = 2_000
const WAITING_LIMIT = 64
const OWNER_WAITING_LIMIT = 32
const RETRY_AFTER_S = 2

interface Share {
	bytes: number
	/** Such as a token; null: it has no limit of its own. */
	owner: string | null
}

interface Waiting extends Share {
	start(): void
}

let free = BUDGET_BYTES
/** Bytes by owner. */
const held = new Map<string, number>()
/**
 * Served in order, so that small ones do not keep a large one waiting for ever; but those whose owner holds too much let
 * others go ahead.
 */
const waiting: Waiting[] = []
const shares = new WeakMap<object, () => void>()

/**
 * Takes a share for a large body before it is read; settles once the request has it. It is given back when the request is over,
 * however it ended. Undefined for a body that is not counted.
 */
export function shareForBody(
	request: Request,
	ordinaryBytes: number,
	owner: string | null = null,
): Promise<void> | undefined {
	const bytes = bytesOf(request, ordinaryBytes)
	return bytes > 0 ? takeShare(request, { bytes, owner }) : undefined
}

async function takeShare(request: Request, share: Share): Promise<void> {
	await take(share, request)
	shares.set(request, () => giveBack(share))
}

/** Gives the share of a hapi request's body back: nothing of it is held any more. May be called again. */
export function bodyUsed(request: object): void {
	const release = shares.get(request)
	shares.delete(request)
	release?.()
}

/** What the body may take: 0 for one that is not counted. The size of a compressed or chunked body is not known. */
function bytesOf({ headers, route }: Request, ordinaryBytes: number): number {
	const { maxBytes = 0, parse } = route.settings.payload ?? {}
	if (parse === false || maxBytes <= ordinaryBytes) return 0
	if (headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined) return maxBytes
	const declared = Number(headers['content-length'] ?? 0)
	// One that is over the limit is refused before anything of it is read.
	return declared > SMALL_BYTES && declared <= maxBytes ? declared : 0
}

async function take(share: Share, { raw: { res } }: Request): Promise<void> {
	if (waiting.length === 0 && mayHold(share) && share.bytes <= free) return hold(share)
	const { promise, resolve, reject } = Promise.withResolvers<void>()
	const own: Waiting = { ...share, start: resolve }
	const leave = (): void => {
		const at = waiting.indexOf(own)
		if (at < 0) return
		waiting.splice(at, 1)
		reject(busy())
		startNext()
	}
	waiting.push(own)
	startNext()
	const isOwners = ({ owner }: Share): boolean => owner !== null && owner === share.owner
	if (waiting.length > WAITING_LIMIT || waiting.filter(isOwners).length > OWNER_WAITING_LIMIT) leave()
	const timer = setTimeout(leave, WAIT_MS)
	res.once('close', leave)
	try {
		await promise
	} finally {
		clearTimeout(timer)
		res.off('close', leave)
	}
}

function mayHold({ bytes, owner }: Share): boolean {
	const before = owner === null ? 0 : (held.get(owner) ?? 0)
	return before === 0 || before + bytes <= OWNER_BYTES
}

function hold({ bytes, owner }: Share): void {
	free -= bytes
	if (owner !== null) held.set(owner, (held.get(owner) ?? 0) + bytes)
}

function giveBack({ bytes, owner }: Share): void {
	free += bytes
	const left = owner === null ? 0 : (held.get(owner) ?? 0) - bytes
	if (owner !== null && left > 0) held.set(owner, left)
	else if (owner !== null) held.delete(owner)
	startNext()
}

function startNext(): void {
	for (let at = 0; at < waiting.length;) {
		const next = waiting[at] as Waiting
		if (!mayHold(next)) at++
		else if (next.bytes > free) return
		else {
			waiting.splice(at, 1)
			hold(next)
			next.start()
		}
	}
}

function busy(): Fault {
	return new Fault(
		'unavailable',
		`large requests already use all of the ${BUDGET_BYTES / 1024 / 1024} MiB that they share; try again in a moment, or upload files first and refer to them`,
		{ headers: { 'retry-after': String(RETRY_AFTER_S) } },
	)
}
