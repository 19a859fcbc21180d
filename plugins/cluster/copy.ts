/** Copies everything from one engine into another, and compares. */
import { hash } from 'node:crypto'
import { Fault } from '../../core/errors.ts'
import { encodeValue } from '../../core/store/codec.ts'
import { format } from '../../core/store/format.ts'
import type { Contents, Engine, Op } from '../../core/store/ports.ts'

export interface CopyRequest {
	from: Engine
	to: Engine
	signal: AbortSignal
	/** Reports progress from time to time. */
	step(what: string): void
}

/** Limits of one commit. */
const RECORDS = 100
const BYTES = 4 * 1024 * 1024
/** Appends at the same time. */
const APPENDS = 64
const REPORTED_EVERY = 1000

/**
 * Copies everything, then compares. `to` must be empty, and neither engine may be in use. No gateway opens the copy before it is
 * complete and compared. The jobs of runs lose their number of attempts, and positions in the log change. Returns how many records,
 * events and jobs were copied. Throws `conflict` if `to` is not empty, `unavailable` if `from` must be upgraded first,
 * `store_damaged` if the copy differs.
 */
export async function copyEngine({ from, to, signal, step }: CopyRequest) {
	const [source, target] = [contentsOf(from), contentsOf(to)]
	const mark = from.format?.mark()
	if (mark?.format !== format || mark.from !== undefined)
		throw new Fault('unavailable', 'the data has an older format: start the gateway on it once, which upgrades it')
	await mustBeEmpty(target)
	await to.format?.change({ ...mark, copying: true })
	const reporter = (what: string): ((count: number) => void) => {
		let next = REPORTED_EVERY
		return (count) => {
			signal.throwIfAborted()
			if (count < next) return
			next = count + REPORTED_EVERY
			step(`${what}, ${count} so far`)
		}
	}
	const records = await copyRecords(from, to, reporter('records'))
	const events = await copyLog(source, to, reporter('events'))
	let jobs = 0
	for await (const job of source.jobs()) {
		await to.queue.enqueue(job)
		jobs++
	}
	step('comparing')
	await compare(from, to, signal)
	await to.format?.change(mark)
	return { records, events, jobs }
}

function contentsOf({ contents }: Engine): Contents {
	if (contents) return contents
	throw new Fault('unavailable', 'this store cannot be copied')
}

async function mustBeEmpty({ scopes, appends, jobs }: Contents): Promise<void> {
	for (const part of [scopes(), appends(), jobs()])
		for await (const _ of part)
			throw new Fault('conflict', 'the target already contains data: name an empty folder, or another store.prefix')
}

async function copyRecords(from: Engine, to: Engine, report: (count: number) => void): Promise<number> {
	let count = 0
	for await (const scope of contentsOf(from).scopes()) {
		let ops: Op[] = []
		let bytes = 0
		const flush = async (): Promise<void> => {
			if (ops.length > 0) await to.store.commit(scope, ops)
			ops = []
			bytes = 0
		}
		for await (const { key, value } of from.store.list([scope])) {
			const size = encodeValue(value, 0).length
			if (ops.length === RECORDS || bytes + size > BYTES) await flush()
			ops.push({ key, value, expect: null })
			bytes += size
			report(++count)
		}
		await flush()
	}
	return count
}

/** Appends several entries at the same time, but those of one run one after another. */
async function copyLog({ appends }: Contents, to: Engine, report: (count: number) => void): Promise<number> {
	const lasts = new Map<string, number>()
	let busy = new Set<string>()
	let pending: Promise<unknown>[] = []
	let count = 0
	const flush = async (): Promise<void> => {
		await Promise.all(pending)
		pending = []
		busy = new Set()
	}
	for await (const { run, entries } of appends()) {
		if (pending.length === APPENDS || (run !== null && busy.has(run))) await flush()
		const expected = run === null ? 0 : (lasts.get(run) ?? 0)
		if (run !== null) {
			busy.add(run)
			lasts.set(run, entries.at(-1)?.event.sequence ?? expected)
		}
		const appended = to.log.append(run, expected, [...entries])
		// `flush` reports a failure; until then the rejection has no handler.
		appended.catch(() => {})
		pending.push(appended)
		count += entries.length
		report(count)
	}
	await flush()
	return count
}

async function compare(from: Engine, to: Engine, signal: AbortSignal): Promise<void> {
	const scopes = await Array.fromAsync(contentsOf(from).scopes())
	const others = await Array.fromAsync(contentsOf(to).scopes())
	mustBeEqual('scopes', scopes.toSorted(), others.toSorted())
	for (const scope of scopes) {
		const copies = to.store.list([scope])[Symbol.asyncIterator]()
		for await (const { key, value } of from.store.list([scope])) {
			signal.throwIfAborted()
			const { value: copy } = await copies.next()
			mustBeEqual(`record ${key.join('/')}`, [key, value], copy && [copy.key, copy.value])
		}
		if (!(await copies.next()).done) throw differs(`records in ${scope}`)
	}
	mustBeEqual('events', await checksumOf(contentsOf(from)), await checksumOf(contentsOf(to)))
	const jobs = async ({ jobs }: Contents): Promise<unknown[]> => Array.fromAsync(jobs())
	mustBeEqual('jobs', await jobs(contentsOf(from)), await jobs(contentsOf(to)))
}

/** A checksum of all entries of the log that does not depend on the order of runs. */
async function checksumOf({ appends }: Contents): Promise<string> {
	let sum = 0n
	let count = 0
	for await (const { run, entries } of appends())
		for (const { event, step } of entries) {
			const digest = hash('sha256', encodeValue([run, event, step ?? null], 0), 'buffer')
			sum = BigInt.asUintN(64, sum + digest.readBigUInt64LE(0))
			count++
		}
	return `${count} ${sum}`
}

function mustBeEqual(what: string, one: unknown, other: unknown): void {
	if (other === undefined || !encodeValue(one, 0).equals(encodeValue(other, 0))) throw differs(what)
}

function differs(what: string): Fault {
	return new Fault('store_damaged', `the copy differs from the source (${what}): remove it, and copy again`)
}
