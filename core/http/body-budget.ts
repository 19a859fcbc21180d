/**
 * Bounds the memory of bodies: all bodies that are read, parsed or in use at the same time share one budget of bytes, in all
 * generations. On routes with the ordinary limit, a body counts only while it is read: clients may send bodies slowly, and on all
 * connections.
 */
import type { Request } from '@hapi/hapi'
import { Fault } from '../errors.ts'
import { Counts } from '../util/counts.ts'

/** The ordinary limit of one body. */
export const BODY_LIMIT_BYTES: number = 1024 * 1024
/** Of all bodies together. Parsing needs several times as much for a moment. */
export const BUDGET_BYTES = 96 * 1024 * 1024
/** A body of a known size up to this is not counted. A body that is counted while it is read counts once it is larger. */
const SMALL_BYTES = 64 * 1024
/** Of all bodies of one owner. */
const OWNER_BYTES = (BUDGET_BYTES * 4) / 5
/** For how long a request waits for its share, and how many may wait, of all and of one owner. */
const WAIT_MS = 2_000
const WAITING_LIMIT = 64
const OWNER_WAITING_LIMIT = 32
const RETRY_AFTER_S = 2

interface Share {
	bytes: number
	/** For example a token; null: no limit per owner applies. */
	owner: string | null
}

interface Waiting extends Share {
	start(): void
}

let free = BUDGET_BYTES
/** Bytes by owner. */
const held = new Counts()
/**
 * Served in order, so that small bodies do not keep a large one waiting forever. But a body whose owner holds too much is
 * skipped.
 */
const waiting: Waiting[] = []
const shares = new WeakMap<object, Share>()

/**
 * Acquires a share for a body before it is read; settles once the request has it. It is released when the request ends.
 * Undefined for a body that is not counted, and for one whose share grows while it arrives.
 */
export function shareForBody(request: Request, owner: string | null = null): Promise<void> | undefined {
	const { headers, route } = request
	const { maxBytes = 0, output, parse } = route.settings.payload ?? {}
	if (parse === false) return undefined
	// The size of a compressed or chunked body is not known.
	if (headers['transfer-encoding'] !== undefined || headers['content-encoding'] !== undefined) {
		if (maxBytes > BODY_LIMIT_BYTES) return takeShare(request, { bytes: maxBytes, owner })
		if (output === 'data') countWhileRead(request, owner)
		return undefined
	}
	const bytes = Number(headers['content-length'] ?? 0)
	// A body over the limit is refused before any of it is read.
	return bytes > SMALL_BYTES && bytes <= maxBytes ? takeShare(request, { bytes, owner }) : undefined
}

async function takeShare(request: Request, share: Share): Promise<void> {
	await take(share, request)
	shares.set(request, share)
}

/**
 * For a body of unknown size on a route with the ordinary limit: most are short. If the budget is used up, the connection is
 * closed, since hapi cannot answer before it has read the body.
 */
function countWhileRead(request: Request, owner: string | null): void {
	const share = { bytes: 0, owner }
	shares.set(request, share)
	let bytes = 0
	request.events.on('peek', (chunk: string | Buffer) => {
		bytes += chunk.length
		if (bytes <= SMALL_BYTES || shares.get(request) !== share) return
		const more = { bytes: bytes - share.bytes, owner }
		if (!mayHold(more) || more.bytes > free) return void request.raw.req.destroy()
		hold(more)
		share.bytes = bytes
	})
}

/** Call this once a body has been read: on routes with the ordinary limit it releases the share. */
export function bodyRead(request: Request): void {
	const { maxBytes = 0 } = request.route.settings.payload ?? {}
	if (maxBytes <= BODY_LIMIT_BYTES) bodyUsed(request)
}

/** Releases the share of a hapi request's body. May be called again. */
export function bodyUsed(request: object): void {
	const share = shares.get(request)
	shares.delete(request)
	if (share) giveBack(share)
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
	const before = owner === null ? 0 : held.of(owner)
	return before === 0 || before + bytes <= OWNER_BYTES
}

function hold({ bytes, owner }: Share): void {
	free -= bytes
	if (owner !== null) held.add(owner, bytes)
}

function giveBack({ bytes, owner }: Share): void {
	free += bytes
	if (owner !== null) held.add(owner, -bytes)
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
