/**
 * The contract of `engine.ts` in a plugin's folder: an engine that stores the data at `store.url` instead of in the folder
 * `store.path`. The host loads every such file if `store.url` is set, so the file imports large modules on first use. The plugin
 * comes with the gateway; its `settings.ts` declares `store.url` and the engine's other settings.
 */
import type { KeyObject } from 'node:crypto'
import type { Config, StoreSettings } from '../../config/types.ts'
import type { Handler, Listeners } from '../http/listeners.ts'
import type { Logger } from '../log/log.ts'
import type { RunPool } from '../runs/run-pool.ts'
import type { Engine, ObservedLease, Tenure } from '../store/ports.ts'

export interface EngineRequest {
	store: StoreSettings
	/** The caller holds its lock. */
	home: string
	log?: Logger
	/** Ends a wait for another gateway. */
	signal?: AbortSignal
	/**
	 * Called often during a wait for another gateway, with that gateway's lease, and with null at the takeover. An error that it
	 * throws ends the wait.
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
	 * As `EngineRequest.onLeaseObserved`. Throws `config_invalid` if this gateway has a different key than the working one, and
	 * `unavailable` if it cannot listen.
	 */
	onLeaseObserved(lease: ObservedLease | null): Promise<void>
	/**
	 * For a working gateway: wraps the handler of requests, so that it also accepts forwarded ones. Adds the threads that waiting
	 * gateways lend to `pool`.
	 */
	accept(tenure: Tenure, pool: RunPool): (handler: Handler) => Handler
	/** Call this once it serves requests. */
	serves(tenure: Tenure): Promise<void>
	/** How many requests it has accepted from other gateways. */
	forwarded(): number
}

export interface MemberOptions {
	config: Config
	/** The program of worker threads. */
	worker: URL
	listeners: Listeners
	log: Logger
	/** The current key of this home. */
	installationKey(): Promise<KeyObject>
	/** Called once it listens, or listens at one more address. `holder`: the working gateway, for people. */
	listening(holder: string): void
}
