/** At a waiting gateway: lends its worker threads to the current working gateway. */
import { addAbortListener } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { isFault, messageOf } from '../../../../core/errors.ts'
import type { Logger } from '../../../../core/log/log.ts'
import { openConnector } from './connect.ts'
import type { LenderRoute } from './connect.ts'
import { openLentThreads } from './lent-threads.ts'
import { openLink } from './link.ts'
import type { LinkLimits, ThreadLink } from './link.ts'
import type { FromBorrower, FromLender } from './protocol.ts'

export interface LenderOptions {
	/** This gateway's name in log messages. */
	name: string
	version: string
	/** The worker's module. */
	worker: URL
	threads: number
	runs_per_thread: number
	heap_mib: number
	log: Logger
	limits?: LinkLimits
}

export type Lender = ReturnType<typeof openLender>

/** Exponential backoff between attempts to connect, with a random factor from 0.5 to 1. */
const FIRST_PAUSE_MS = 250
const MAX_PAUSE_MS = 30_000
/** A link that lasted this long resets the backoff. */
const STABLE_MS = 10_000

export function openLender({ name, version, log, limits, ...workers }: LenderOptions) {
	const connect = openConnector(version)
	let route: LenderRoute | null = null
	let end = new AbortController()
	let current: Promise<unknown> = Promise.resolve()
	let lending: { leave(): void; over: Promise<unknown> } | undefined

	/** Settles with the reason once the link and its threads have ended. */
	const lend = async (to: LenderRoute, signal: AbortSignal): Promise<string> => {
		const socket = await connect(to, signal)
		const { promise: ended, resolve } = Promise.withResolvers<string>()
		const link: ThreadLink<FromLender> = openLink(socket, {
			receive: (message) => threads.receive(message as FromBorrower),
			ended: resolve,
			...(limits && { limits }),
		})
		const threads = openLentThreads({
			...workers,
			send: (message) => link.send(message),
			onLost: () => log.warn('a worker thread that is lent was lost; another takes its place'),
			onBroken(fault) {
				log.error(fault.message)
				link.end(fault.message)
			},
		})
		using _ = addAbortListener(signal, () => link.end('this gateway no longer lends to it'))
		link.send({ kind: 'hello', name, threads: workers.threads, runs_per_thread: workers.runs_per_thread })
		const own = { leave: () => link.send({ kind: 'leaving' }), over: ended }
		lending = own
		log.info(`lends its threads to the working gateway: ${workers.threads}`)
		const reason = await ended
		if (lending === own) lending = undefined
		await threads.close()
		return reason
	}

	const keepLending = async (signal: AbortSignal): Promise<void> => {
		let failures = 0
		let lastLogged = ''
		while (route && !signal.aborted) {
			const began = performance.now()
			let isRefused = false
			const why = await lend(route, signal).catch((error: unknown) => {
				isRefused = isFault(error, 'conflict')
				return messageOf(error)
			})
			if (signal.aborted) return
			if (performance.now() - began > STABLE_MS) failures = 0
			const line = `threads cannot be lent to the working gateway: ${why}`
			if (line === lastLogged) log.debug(line)
			else if (isRefused) log.info(line)
			else log.warn(line)
			lastLogged = line
			const most = isRefused ? MAX_PAUSE_MS : Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures++)
			await pause(most * (0.5 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => {})
		}
	}

	return {
		/** Lends to that gateway from now on; null: to none. A link to another tenure ends at once. */
		follow(next: LenderRoute | null): void {
			const former = route
			route = next
			if (former?.tenure === next?.tenure) return
			end.abort()
			end = new AbortController()
			if (next) current = Promise.all([current, keepLending(end.signal)])
		},
		/** Accepts no further runs, and settles once the current ones have ended, or after `graceMs`. */
		async close(graceMs: number): Promise<void> {
			const { signal } = end
			lending?.leave()
			await Promise.race([lending?.over, pause(graceMs, undefined, { signal }).catch(() => {})])
			route = null
			end.abort()
			await current
		},
	}
}
