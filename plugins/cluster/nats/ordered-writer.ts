/**
 * Writes to one stream. Each write is retried until the cluster has answered, without a time limit, and is stored once: it expects
 * the last message of its subject, so only one of several attempts can succeed.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Fault, isFault, messageOf } from '../../../core/errors.ts'
import { BoundedMap } from '../../../core/util/bounded-map.ts'
import { newId } from '../../../core/util/ids.ts'
import { hasNoResponder, unreachable } from './client.ts'
import type { Answer, Client } from './client.ts'
import type { Lease } from './lease.ts'
import type { Space } from './space.ts'
import { replacing, WRONG_SEQUENCE } from './streams.ts'

export interface Outgoing {
	/** The subject in the stream, such as `svc.kv.r.0.KEY`. */
	subject: string
	data: Buffer
	/** The message expires after this long: `30s`. */
	ttl?: string
}

export interface WriterOptions {
	client: Client
	stream: string
	prefix: string
	lease: Lease
	space: Space
	/** The position of a subject's last message, 0 for none; undefined if the caller does not know it. */
	lastOf?: (subject: string) => number | undefined
	/** The last position of the stream. */
	last: number
	/** Each message replaces the previous one of its subject. */
	replaces?: boolean
}

export interface OrderedWriter {
	/**
	 * Stores up to 100 messages, all or none, at consecutive positions; settles with the position of the first. Calls settle in the
	 * order of positions, each after its own `settled`. Writes with a common subject are sent in the order of their calls. Rejects
	 * with `storage_full`, or with `unavailable` once the lease is lost.
	 */
	write(messages: readonly Outgoing[], settled?: (first: number | null) => void): Promise<number>
	/** Call this with each position that another writer used. */
	passed(seq: number): void
	/** Later writes wait for `work`. */
	after(work: Promise<unknown>): void
	/** Settles once all writes have settled. */
	idle(): Promise<void>
}

interface Written {
	first: number
	last: number
	release(): void
}

const RETRY_MS = 100
/** Attempts without a responder before the epoch is checked. */
const NO_RESPONDER_ATTEMPTS = 3
/** Subjects whose last position is cached. */
const CACHED = 50_000
/** Above this, new writes are refused until the cluster has caught up. */
const MAX_BACKLOG_BYTES = 64 * 1024 * 1024

export function openOrderedWriter(options: WriterOptions): OrderedWriter {
	const { client, stream, prefix, lease, space, lastOf, replaces = false } = options
	const known = new BoundedMap<string, number>(CACHED)
	/** The newest write of each subject that has not settled. */
	const tails = new Map<string, Promise<unknown>>()
	const open = new Set<Promise<unknown>>()
	let barrier: Promise<unknown> | undefined
	let backlog = 0
	/** All writes up to this position have settled. */
	let released = options.last
	/** Acknowledged writes that wait for writes at lower positions. */
	const waiting: Written[] = []
	let unanswered = 0

	const drain = (): void => {
		for (;;) {
			const next = waiting[0]
			if (!next || (next.first > released + 1 && unanswered > 0)) return
			waiting.shift()
			released = Math.max(released, next.last)
			next.release()
		}
	}
	const acknowledged = (written: Written): void => {
		const at = waiting.findLastIndex(({ first }) => first < written.first)
		waiting.splice(at + 1, 0, written)
	}

	const lastPosition = async (subject: string): Promise<number> =>
		known.get(subject) ?? lastOf?.(subject) ?? (await client.last(stream, subject))?.seq ?? 0

	/** Returns the position of the first message. */
	const store = async (messages: readonly Outgoing[]): Promise<number> => {
		const [{ subject }] = messages as [Outgoing]
		const id = newId()
		let expect: number | undefined
		let noResponders = 0
		for (let attempt = 1; ; attempt++) {
			if (lease.isLost()) lease.mustHold()
			try {
				expect ??= await lastPosition(subject)
				const { seq, error } = await send({ client, prefix, lease, replaces }, messages, id, expect, attempt > 1)
				if (!error) return seq - messages.length + 1
				const full = space.refusal(error)
				if (full !== undefined) throw new Fault('storage_full', full)
				noResponders = 0
				if (error.err_code === WRONG_SEQUENCE) {
					const found = await client.last(stream, subject)
					// An earlier attempt succeeded, but its answer was lost.
					if (found?.headers.includes(id)) return found.seq
					expect = found?.seq ?? 0
					continue
				}
			} catch (error) {
				if (isFault(error, 'storage_full')) throw error
				if (/clos/i.test(messageOf(error)) && client.trouble()?.includes('closed'))
					throw unreachable('the store is closed', error)
				if (hasNoResponder(error) && ++noResponders % NO_RESPONDER_ATTEMPTS === 0)
					await lease.reassert().catch(() => {})
			}
			await pause(RETRY_MS)
		}
	}

	const writeNow = async (messages: readonly Outgoing[], settled?: (first: number | null) => void): Promise<number> => {
		const { promise, resolve } = Promise.withResolvers<number>()
		unanswered++
		try {
			const first = await store(messages)
			for (const [index, { subject }] of messages.entries()) known.set(subject, first + index)
			const release = (): void => {
				settled?.(first)
				resolve(first)
			}
			acknowledged({ first, last: first + messages.length - 1, release })
		} catch (error) {
			settled?.(null)
			throw error
		} finally {
			unanswered--
			drain()
		}
		return promise
	}

	return {
		write(messages, settled) {
			const bytes = messages.reduce((sum, { data }) => sum + data.length, 0)
			if (backlog > MAX_BACKLOG_BYTES) throw unreachable('the cluster does not keep up: try again later')
			backlog += bytes
			const before = messages.flatMap(({ subject }) => tails.get(subject) ?? [])
			if (barrier) before.push(barrier)
			const written =
				before.length === 0
					? writeNow(messages, settled)
					: Promise.allSettled(before).then(() => writeNow(messages, settled))
			const settling = Promise.allSettled([written])
			open.add(settling)
			for (const { subject } of messages) tails.set(subject, settling)
			void settling.then(() => {
				backlog -= bytes
				open.delete(settling)
				for (const { subject } of messages) if (tails.get(subject) === settling) tails.delete(subject)
			})
			return written
		},
		passed(seq) {
			acknowledged({ first: seq, last: seq, release: () => {} })
			drain()
		},
		after(work) {
			const next = Promise.allSettled([barrier, work])
			barrier = next
			void next.then(() => {
				if (barrier === next) barrier = undefined
			})
		},
		async idle() {
			while (open.size > 0) await Promise.all(open)
		},
	}
}

/**
 * One attempt: a message, or an atomic batch of several. If the servers refuse a message of a batch before the last one, such as for
 * lack of space, the answer to the last one does not report that, or never arrives. `each`: request an answer to every message.
 */
async function send(
	{ client, prefix, lease, replaces }: Pick<WriterOptions, 'client' | 'prefix' | 'lease' | 'replaces'>,
	messages: readonly Outgoing[],
	id: string,
	expect: number,
	each: boolean,
): Promise<Answer<{ seq: number }>> {
	const batch = messages.length > 1 ? newId() : undefined
	const { promise: refused, resolve: refuse } = Promise.withResolvers<Answer<{ seq: number }>>()
	for (const [index, { subject, data, ttl }] of messages.entries()) {
		const to = `${prefix}.w.${lease.epoch}.${subject.slice(prefix.length + 1)}`
		const isLast = index === messages.length - 1
		const headers = {
			'Svc-Write': id,
			...(replaces && replacing),
			...(index === 0 && { 'Nats-Expected-Last-Subject-Sequence': expect }),
			...(ttl !== undefined && { 'Nats-TTL': ttl }),
			...(batch !== undefined && { 'Nats-Batch-Id': batch, 'Nats-Batch-Sequence': index + 1 }),
			...(batch !== undefined && isLast && { 'Nats-Batch-Commit': 1 }),
		}
		if (!isLast && !each) {
			client.send(to, data, headers)
			continue
		}
		const asked = client.ask(to, data, headers)
		if (isLast) return Promise.race([refused, asked.then((answer) => answer.json<Answer<{ seq: number }>>())])
		// The answer to an accepted message is empty.
		asked.then((answer) => answer.data.length > 0 && refuse(answer.json())).catch(() => {})
	}
	throw new Error('there is nothing to send')
}
