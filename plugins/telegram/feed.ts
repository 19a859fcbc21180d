/** Polls for updates, and confirms a batch only once it is accepted. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createRunner, createSource } from '@grammyjs/runner'
import type { UpdateSink } from '@grammyjs/runner'
import type { Update } from 'grammy/types'
import type { Link } from '../channels/adapter.ts'
import { albumOf, groupAlbums } from './albums.ts'
import { POLL_S } from './api.ts'
import type { BotApi } from './api.ts'
import { errorOf, isCode, lossOf } from './errors.ts'
import { wantedUpdates } from './incoming.ts'

const BATCH = 50
/** Pauses between attempts: the first and the longest one. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000
/** If the server itself sets the delay. */
const LONGEST_WAIT_MS = 600_000
/** A single lost poll, which happens on idle connections, is not reported. */
const FAILURES_SHOWN = 2
/** Pause between two empty answers of a server that does not wait for updates. */
const IDLE_PAUSE_MS = 500
/** The longest pause if a server repeats the same updates. */
const LONGEST_STALE_PAUSE_MS = 5_000

/** The parts of an album arrive within a moment. */
const ALBUM_MS = 500
const ALBUM_ATTEMPTS = 4

/** grammY's type of an AbortSignal. */
type Signal = NonNullable<Parameters<BotApi['call']['getUpdates']>[1]>

/**
 * `take` gets one update, or the parts of an album, and settles once they are durable. The server deletes updates as soon as
 * a later one is requested, so there is no request before that; if `take` throws, nothing is confirmed and the connection is
 * `lost`.
 */
export async function openFeed(
	api: BotApi,
	link: Link,
	take: (updates: readonly Update[]) => Promise<void>,
): Promise<AsyncDisposable> {
	const cursor = Number((await link.cursor()) ?? Number.NaN)
	let offset = Number.isSafeInteger(cursor) ? cursor + 1 : undefined
	let failures = 0
	/** Successive answers with invalid or old updates. */
	let stale = 0
	/** Reports that polling fails. */
	let isReported = false

	/** One batch; empty if no update arrived during one poll. */
	async function supply(_size: number, signal: Signal): Promise<Update[]> {
		if (stale > 0) await pause(growing(stale, LONGEST_STALE_PAUSE_MS), signal)
		for (;;) {
			if (signal.aborted) return []
			const began = performance.now()
			try {
				const given = await ask(POLL_S, signal)
				const updates = await withAlbum(given.filter(isUpdate), signal)
				if (isReported) link.status('connected')
				isReported = false
				failures = 0
				const waited = performance.now() - began
				if (given.length === 0 && waited < IDLE_PAUSE_MS) await pause(IDLE_PAUSE_MS - waited, signal)
				const isNew = updates.some(({ update_id }) => update_id >= (offset ?? -Infinity))
				stale = isNew || given.length === 0 ? 0 : stale + 1
				return updates
			} catch (error) {
				if (signal.aborted || isCode(error, 401) || isCode(error, 404)) throw error
				failures++
				await recover(error, signal)
			}
		}
	}

	/** Without confirming what it returned before. */
	async function ask(timeout: number, signal: Signal): Promise<unknown[]> {
		const given: unknown = await api.call.getUpdates(
			{ ...(offset !== undefined && { offset }), limit: BATCH, timeout, allowed_updates: wantedUpdates },
			signal,
		)
		if (!Array.isArray(given)) throw new Error('the server returned an answer that the Bot API does not define')
		return given
	}

	/** If they end in the middle of an album, the rest may follow. */
	async function withAlbum(updates: Update[], signal: Signal): Promise<Update[]> {
		let all = updates
		for (let attempt = 0; attempt < ALBUM_ATTEMPTS; attempt++) {
			const last = all.at(-1)
			if (!last || all.length >= BATCH || albumOf(last) === undefined) break
			await pause(ALBUM_MS, signal)
			if (signal.aborted) return [] // they come again
			const more = (await ask(0, signal).catch((): unknown[] => [])).filter(isUpdate)
			if (more.length <= all.length) break
			all = more
		}
		return all
	}

	async function recover(error: unknown, signal: Signal): Promise<void> {
		if (isCode(error, 409) && /webhook/i.test(error.description)) {
			link.log.warn('the bot had a webhook, which would receive its messages; the webhook is removed')
			await api.call.deleteWebhook({ drop_pending_updates: false }, signal).catch(() => {})
		}
		const failure = errorOf(error, link)
		const isConflict = isCode(error, 409) && !/webhook/i.test(error.description)
		const why = isConflict
			? 'another process polls this bot; a bot token can be used in only one place'
			: failure.message
		if (isConflict || failures >= FAILURES_SHOWN) {
			isReported = true
			link.status('reconnecting', why)
		}
		const { retry_after_ms = 0 } = failure as { retry_after_ms?: number }
		await pause(Math.max(growing(failures, LONGEST_PAUSE_MS), Math.min(retry_after_ms, LONGEST_WAIT_MS)), signal)
	}

	const sink: UpdateSink<Update> = {
		async handle(updates) {
			// In order, since a restarted gateway resumes at the newest accepted update.
			const sorted = updates.toSorted((a, b) => a.update_id - b.update_id)
			for (const group of groupAlbums(sorted)) await take(group)
			const newest = sorted.at(-1)
			if (newest) offset = newest.update_id + 1
			return Infinity
		},
		size: () => 0,
		snapshot: () => [],
	}
	const runner = createRunner(createSource({ supply }), sink)
	runner.start()
	const stop = (): void => void runner.stop()
	link.signal.addEventListener('abort', stop)
	const ended = runner.task()?.catch((error: unknown) => link.lost(lossOf(error, link)))
	return {
		async [Symbol.asyncDispose]() {
			link.signal.removeEventListener('abort', stop)
			await Promise.all([runner.stop(), ended])
		},
	}
}

/** Without an id it cannot be confirmed either. */
function isUpdate(update: unknown): update is Update {
	return Number.isSafeInteger((update as Partial<Update> | null | undefined)?.update_id)
}

/** @param count 1 for the first pause */
function growing(count: number, longest: number): number {
	return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(count - 1, 16), longest)
}

/** Ends early if the signal aborts. */
async function pause(ms: number, signal: Signal): Promise<void> {
	await sleep(ms, undefined, { signal: signal as AbortSignal, ref: false }).catch(() => {})
}
