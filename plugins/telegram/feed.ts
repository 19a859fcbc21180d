/** Polls for updates, and confirms a batch only after all of it was accepted. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Update } from 'grammy/types'
import type { Link } from '../channels/adapter.ts'
import { albumOf, groupAlbums } from './albums.ts'
import { POLL_S } from './api.ts'
import type { BotApi } from './api.ts'
import { errorOf, isCode, connectionErrorOf } from './errors.ts'
import { wantedUpdates } from './incoming.ts'

const BATCH = 50
/** Pauses between attempts: the first and the longest one. */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000
/** Limit of a pause that the server requests. */
const LONGEST_WAIT_MS = 600_000
/** Successive failures before they are reported. A single failed poll is normal on idle connections. */
const FAILURES_REPORTED = 2
/** Pause after an empty response of a server that does not support long polling. */
const IDLE_PAUSE_MS = 500
/** The longest pause if the server repeats the same updates. */
const LONGEST_STALE_PAUSE_MS = 5_000

/** Interval of polls for further parts of an album, which arrive almost together. */
const ALBUM_MS = 500
const ALBUM_ATTEMPTS = 4

/** grammY's type of an AbortSignal. */
type Signal = NonNullable<Parameters<BotApi['call']['getUpdates']>[1]>

/**
 * `take` gets one update, or the parts of an album, and settles once they are durable. A request for later updates confirms earlier
 * ones, so the next request waits for that. If `take` throws, nothing is confirmed, and the connection is `lost`.
 */
export async function openFeed(
	api: BotApi,
	link: Link,
	take: (updates: readonly Update[]) => Promise<void>,
): Promise<AsyncDisposable> {
	const ending = new AbortController()
	const signal = AbortSignal.any([link.signal, ending.signal])
	const cursor = Number((await link.cursor()) ?? Number.NaN)
	let offset = Number.isSafeInteger(cursor) ? cursor + 1 : undefined
	let failures = 0
	/** Successive responses with only invalid or old updates. */
	let stale = 0
	/** Whether failures were reported by `link.status`. */
	let isReported = false

	/** Gets one batch; empty if no update arrived during the poll. Retries after errors. */
	async function nextBatch(): Promise<Update[]> {
		if (stale > 0) await pause(backoffMs(stale, LONGEST_STALE_PAUSE_MS), signal)
		for (;;) {
			if (signal.aborted) return []
			const began = performance.now()
			try {
				const given = await requestUpdates(POLL_S)
				const updates = await withAlbum(given.filter(isUpdate))
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
				await recover(error)
			}
		}
	}

	/** Requests updates without confirming any. */
	async function requestUpdates(timeout: number): Promise<unknown[]> {
		const given: unknown = await api.call.getUpdates(
			{ ...(offset !== undefined && { offset }), limit: BATCH, timeout, allowed_updates: wantedUpdates },
			signal as Signal,
		)
		if (!Array.isArray(given)) throw new Error('the server returned an answer that the Bot API does not define')
		return given
	}

	/** Waits for the rest of an album at the end of a batch. */
	async function withAlbum(updates: Update[]): Promise<Update[]> {
		let all = updates
		for (let attempt = 0; attempt < ALBUM_ATTEMPTS; attempt++) {
			const last = all.at(-1)
			if (!last || all.length >= BATCH || albumOf(last) === undefined) break
			await pause(ALBUM_MS, signal)
			if (signal.aborted) return [] // they will be delivered again
			const more = (await requestUpdates(0).catch((): unknown[] => [])).filter(isUpdate)
			if (more.length <= all.length) break
			all = more
		}
		return all
	}

	async function recover(error: unknown): Promise<void> {
		if (isCode(error, 409) && /webhook/i.test(error.description)) {
			link.log.warn('the bot had a webhook, which would receive its messages; the webhook is removed')
			await api.call.deleteWebhook({ drop_pending_updates: false }, signal as Signal).catch(() => {})
		}
		const failure = errorOf(error, link)
		const isConflict = isCode(error, 409) && !/webhook/i.test(error.description)
		const why = isConflict
			? 'another process polls this bot; a bot token can be used in only one place'
			: failure.message
		if (isConflict || failures >= FAILURES_REPORTED) {
			isReported = true
			link.status('reconnecting', why)
		}
		const { retry_after_ms = 0 } = failure as { retry_after_ms?: number }
		await pause(Math.max(backoffMs(failures, LONGEST_PAUSE_MS), Math.min(retry_after_ms, LONGEST_WAIT_MS)), signal)
	}

	async function poll(): Promise<void> {
		while (!signal.aborted) {
			// Sorted, since a restarted gateway resumes at the newest accepted update.
			const updates = (await nextBatch()).toSorted((a, b) => a.update_id - b.update_id)
			for (const group of groupAlbums(updates)) await take(group)
			const newest = updates.at(-1)
			if (newest) offset = newest.update_id + 1
		}
	}

	const ended = poll().catch((error: unknown) => {
		if (!signal.aborted) link.lost(connectionErrorOf(error, link))
	})
	return {
		async [Symbol.asyncDispose]() {
			ending.abort()
			await ended
		},
	}
}

/** An update without an id cannot be confirmed. */
function isUpdate(update: unknown): update is Update {
	return Number.isSafeInteger((update as Partial<Update> | null | undefined)?.update_id)
}

/** Exponential backoff. `count`: 1 for the first pause. */
function backoffMs(count: number, longest: number): number {
	return Math.min(FIRST_PAUSE_MS * 2 ** Math.min(count - 1, 16), longest)
}

/** Ends early if the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
	await sleep(ms, undefined, { signal, ref: false }).catch(() => {})
}
