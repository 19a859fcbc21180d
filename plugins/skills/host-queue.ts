/**
 * Assigns hosts to callers: manages the pool of processes, and the queue of waiting callers. Owners, which are agents, take turns.
 *
 * Up to `processes` programs compute at the same time. Two kinds of programs do not count: those that only wait, and the only
 * computing program of an owner. They use the reserve, `waiting_processes`, of which no owner gets all (`Shares.may`). An owner
 * whose program has just ended keeps its place for a second, so that another owner which takes all places does not delay its next
 * program.
 */
import { addAbortListener } from 'node:events'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { FairQueue } from '../../core/util/fair-queue.ts'
import { reserveOf, Shares } from '../../core/util/shares.ts'
import { Fault } from '../../core/errors.ts'
import type { Logger } from '../../core/log/log.ts'
import { once } from '../shared/once.ts'
import { tryLater } from '../shared/try-later.ts'
import type { HostCommand } from './host-command.ts'
import { startHost } from './host.ts'
import type { Host } from './host.ts'

export interface HostQueueOptions {
	/** Called for the first process, and again if it failed. */
	makeCommand(): Promise<HostCommand>
	/** Limit of programs that compute at the same time, and of idle processes. */
	processes: number
	/** Additional processes. */
	waiting_processes: number
	/** Limit of one owner's waiting callers, besides those for whom a process is being started. All owners have a quarter more. */
	max_waiting: number
	orders_per_process: number
	log: Logger
}

const START_WITHIN_MS = 30_000
const KEPT_MS = 1000

interface WaitingCall extends PromiseWithResolvers<Host> {
	owner: string
}

/** The caller that uses a host. */
interface HostUser {
	owner: string
	computes: boolean
}

const closing = (): Fault => new Fault('unavailable', 'the plugin for skills is stopping; try again in a moment')

export function openHostQueue(options: HostQueueOptions) {
	const { processes, waiting_processes, max_waiting, orders_per_process, log } = options
	const makeCommand = once(options.makeCommand)
	/** Running hosts, with the number of orders of each. */
	const hosts = new Map<Host, number>()
	/** The host that has been idle longest is used next: it has had time to prepare for another program. */
	const idle = new Set<Host>()
	const waiting = new FairQueue<WaitingCall>()
	const places = new Shares(
		() => max_waiting + starting.size,
		() => reserveOf(max_waiting),
	)
	const holders = new Map<Host, HostUser>()
	const taken = new Shares(
		() => processes,
		() => waiting_processes,
	)
	const computing = new Shares(
		() => processes,
		() => 0,
	)
	/** When the latest program of each owner ended. */
	const recent = new BoundedMap<string, number>(processes)
	const mayCompute = (owner: string): boolean => {
		if (computing.heldBy(owner) === 0) return true
		let places = computing.used
		for (const [other, ended] of recent) {
			if (other === owner || computing.heldBy(other) > 0) continue
			if (performance.now() - ended <= KEPT_MS) places++
		}
		return places < processes
	}
	const may = (owner: string): boolean => taken.may(owner) && mayCompute(owner)
	/** Set while callers wait for places that are kept for others. */
	let retry: NodeJS.Timeout | undefined
	/** Number of running and starting processes. */
	let size = 0
	/** Processes that are not ready yet. */
	const starting = new Set<Promise<void>>()
	let closed = false

	function grow(): void {
		if (closed || size >= processes + waiting_processes) return
		size++
		const begun = start()
			.catch((error: unknown) => {
				if (closed) return
				log.error({ err: error }, 'a skill host does not start')
				// Otherwise a caller could wait forever for processes that cannot be started.
				nextWaiting()?.reject(
					new Fault('sandbox_crash', 'the process for the code of skills does not start; see the log for the reason'),
				)
			})
			.finally(() => starting.delete(begun))
		starting.add(begun)
	}

	async function start(): Promise<void> {
		let host: Host
		try {
			host = startHost(await makeCommand())
		} catch (error) {
			size--
			throw error
		}
		hosts.set(host, 0)
		void host.gone.then(() => onExit(host))
		if (closed) host.end()
		using _ = setTimeout(() => host.end(), START_WITHIN_MS)
		await host.ready
		offer(host)
	}

	function onExit(host: Host): void {
		const orders = hosts.get(host) ?? 0
		hosts.delete(host)
		idle.delete(host)
		size--
		// Replace a process that has worked. A process that never worked may fail repeatedly: replace it only on demand.
		if (orders > 0 && size < processes) grow()
		else growFor()
	}

	/** Makes a host available. */
	function offer(host: Host): void {
		if (!host.alive) return
		idle.add(host)
		handOut()
		// Keep it if few are idle: it serves an agent that calls rarely while the calls of another use the other hosts.
		if (idle.has(host) && idle.size > processes) {
			idle.delete(host)
			host.end()
		}
	}

	/** Gives idle hosts to waiting callers, and starts further processes if these are too few. */
	function handOut(): void {
		for (const host of idle) {
			const call = nextWaiting(may)
			if (!call) {
				if (waiting.size > 0) retryLater()
				return
			}
			idle.delete(host)
			hosts.set(host, (hosts.get(host) ?? 0) + 1)
			holders.set(host, { owner: call.owner, computes: true })
			taken.add(call.owner)
			computing.add(call.owner)
			call.resolve(host)
		}
		growFor()
	}

	function retryLater(): void {
		retry ??= setTimeout(() => {
			retry = undefined
			handOut()
		}, KEPT_MS).unref()
	}

	/**
	 * Starts a process if callers need one. `newcomer`: an owner whose call is about to wait. Beyond `processes`, starts only one at a
	 * time, since the caller that gets it is chosen when it is ready.
	 */
	function growFor(newcomer?: string): void {
		const wanted = waiting.size + (newcomer === undefined ? 0 : 1)
		if (wanted <= starting.size) return
		const isAllowed = (): boolean => waiting.has(may) || (newcomer !== undefined && may(newcomer))
		if (size < processes || (starting.size === 0 && isAllowed())) grow()
	}

	function nextWaiting(which?: (owner: string) => boolean): WaitingCall | undefined {
		const call = waiting.next(which)
		if (call) places.remove(call.owner)
		return call
	}

	/** Releases the places that a host's caller used. */
	function releasePlaces(host: Host): void {
		const holder = holders.get(host)
		if (!holder) return
		holders.delete(host)
		taken.remove(holder.owner)
		recent.set(holder.owner, performance.now())
		if (holder.computes) computing.remove(holder.owner)
	}

	return {
		/** Waits for a host. Throws `sandbox_busy`, `sandbox_crash` if no process can be started, or the signal's reason. */
		async take(owner: string, signal?: AbortSignal): Promise<Host> {
			signal?.throwIfAborted()
			if (closed) throw closing()
			const call = { ...Promise.withResolvers<Host>(), owner }
			const isReady = idle.size > 0 && may(owner)
			if (!isReady) {
				growFor(owner)
				if (!places.may(owner)) {
					const message = `${places.heldBy(owner)} calls of this agent's skills are already waiting (${places.used} in total); try again later, or raise skills.max_waiting or skills.processes`
					throw tryLater('sandbox_busy', message, 5)
				}
			}
			waiting.add(owner, call)
			places.add(owner)
			handOut()
			// Start a process in advance for the next call.
			if (isReady && idle.size === 0 && starting.size === 0 && size < processes) grow()
			const abort = (): void => {
				if (!waiting.delete(owner, call)) return
				places.remove(owner)
				call.reject(signal?.reason)
			}
			using _ = signal && addAbortListener(signal, abort)
			return await call.promise
		},
		/** Call this when the program of a taken host begins to wait only (true), or computes again. */
		setWaits(host: Host, only: boolean): void {
			const holder = holders.get(host)
			if (!holder || holder.computes !== only) return
			holder.computes = !only
			if (!only) return computing.add(holder.owner)
			computing.remove(holder.owner)
			handOut()
		},
		/** Call this for each host taken, even if dead. */
		release(host: Host): void {
			releasePlaces(host)
			if (!host.alive) return handOut()
			if ((hosts.get(host) ?? 0) >= orders_per_process) host.end()
			else offer(host)
		},
		/** Starts a process if there is none. */
		warm(): void {
			if (size === 0) grow()
		},
		/** Ends all processes; settles when they have ended. */
		async close(): Promise<void> {
			closed = true
			clearTimeout(retry)
			for (let call = nextWaiting(); call; call = nextWaiting()) call.reject(closing())
			const all = [...hosts.keys()]
			for (const host of all) host.end()
			await Promise.all([...starting, ...all.map((host) => host.gone)])
			// Processes that became ready meanwhile were ended too.
			await Promise.all([...hosts.keys()].map((host) => host.gone))
		},
	}
}
