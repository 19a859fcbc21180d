/**
 * The contract of `engine.ts` in a plugin's folder: an engine that keeps the data where `store.url` says, in place of the folder
 * `store.path`. The host finds it by its file and loads it only where `store.url` is set, so the file imports what is heavy when it
 * is asked for. Such a plugin comes with the gateway, and its `settings.ts` declares `store.url` and what else the engine needs.
 */
import type { KeyObject } from 'node:crypto'
import type { Config, StoreSettings } from '../../config/types.ts'
import type { Handler, Listeners } from '../http/listeners.ts'
import type { Logger } from '../log/log.ts'
import type { RunPool } from '../runs/run-pool.ts'
import type { Engine, ObservedLease, Tenure } from '../store/ports.ts'

export interface EngineRequest {
	store: StoreSettings
	/** Of the program, for other gateways. */
	version?: string
	/** This process holds its lock. */
	home: string
	log?: Logger
	/** Ends a wait for another gateway. */
	signal?: AbortSignal
	/**
	 * Called often while it waits for another gateway, with that one's lease; and with null when it takes over. What it throws ends
	 * the wait.
	 */
	onLeaseObserved?: (lease: ObservedLease | null) => void | Promise<void>
}

/** The default export of `engine.ts`. */
export interface EngineModule {
	/** Schemes of the URLs that it serves, such as `nats`. No two engines have the same. */
	readonly schemes: readonly string[]
	/**
	 * Opens the data at `store.url`. An engine that several gateways share, one at a time, waits until no other one works on it.
	 * Throws `store_damaged` or `unavailable`, with what to do.
	 */
	open(request: EngineRequest): Promise<Engine>
	/** For an engine that several gateways share: what this gateway does while another one works on the data. */
	openMember?(options: MemberOptions): Promise<Member>
}

/** A gateway among several that share an engine: it waits and forwards requests to the working one, until it works itself. */
export interface Member extends AsyncDisposable {
	/**
	 * As `EngineRequest.onLeaseObserved`. Throws `config_invalid` if this gateway has another key than the working one, and
	 * `unavailable` if it cannot listen.
	 */
	onLeaseObserved(lease: ObservedLease | null): Promise<void>
	/**
	 * For the time in which it works: stands before whatever answers requests. Threads that waiting gateways lend become part of
	 * `pool`.
	 */
	accept(tenure: Tenure, pool: RunPool): (handler: Handler) => Handler
	/** Call this once it serves requests. */
	serves(tenure: Tenure): Promise<void>
	/** How many requests of other gateways it has taken. */
	forwarded(): number
}

export interface MemberOptions {
	config: Config
	/** Of the program. */
	version: string
	/** The module of worker threads. */
	worker: URL
	listeners: Listeners
	log: Logger
	/** Of this home as it is now. */
	installationKey(): Promise<KeyObject>
	/** Called once it listens, or listens at one more address. `holder`: the working gateway, for people. */
	listening(holder: string): void
}
