import type { Address } from './http/listening.ts'
import type { LentThreads } from './runs/run-pool.ts'
import type { ClusterMember, ClusterStatus } from './store/ports.ts'

/** One health check. */
export interface HealthCheck {
	name: string
	ok: boolean
	/** The state; if there is a problem, what to do. */
	message: string
}

/** The answer of GET /v1/health. */
export interface Health {
	/** `degraded`: it serves, but something needs attention. */
	status: 'ok' | 'degraded' | 'migrating' | 'starting' | 'draining'
	version: string
	generation: number
	/** Seconds since the start. */
	uptime_s: number
	checks: HealthCheck[]
}

export interface PluginStatus {
	name: string
	version: string | null
	/** `failing`: it runs, but since its last start an error of its own was thrown and nothing caught it. */
	state: 'running' | 'failing' | 'failed'
	/** Why it does not run, or runs from older files; else its uncaught error, or the problem that it reports. */
	last_error: string | null
	/** The generation in which this instance began to serve. */
	generation: number | null
	/** `built in`, or its folder. */
	source: string | null
	/** When this instance was started. */
	since: string | null
	/** The version of the contract that it is written for; null if it does not declare one. */
	contract: string | null
}

/** What a running plugin has registered and acquired, all of it released when it stops. */
export interface PluginHoldings {
	/** Such as `GET /v1/agents`. */
	routes: string[]
	/** Names of the tools that it adds for every agent. */
	tools: string[]
	/** Types of events that it handles; a type may end in `*`. */
	events: string[]
	/** Extension points of other plugins that it adds to. */
	extends: string[]
	timers: number
	/** Labels of `ctx.own` and `ctx.defer`. */
	resources: string[]
}

/** `migrating`: the home is upgraded, before plugins start. */
export type GatewayState = 'migrating' | 'starting' | 'ready' | 'draining'

/** A gateway on the data, with its share of threads and runs. */
export interface GatewayMember extends ClusterMember {
	/** Its worker threads that the working gateway uses. The working gateway itself has none before its first run. */
	threads: number
	/** Runs that execute there. */
	runs: number
}

/** What plugins can read about the gateway, and request from it. */
export interface GatewayStatus {
	readonly version: string
	readonly home: string
	readonly started_at: string
	state(): GatewayState
	generation(): number
	/** By name. */
	plugins(): PluginStatus[]
	/** Null for a plugin that does not run. */
	holdings(plugin: string): PluginHoldings | null
	/** Why the current configuration file is not in force; null if it is. */
	configError(): string | null
	/** Why writes are refused; null if they are not. */
	storeTrouble(): string | null
	/** The store's size and its free disk space, in bytes; null if it has no disk of its own. */
	storeSpace(): { bytes: number; free_bytes: number } | null
	/**
	 * Restarts a plugin from its current files, and reloads the configuration. Settles once the new instance serves or has
	 * failed to start; `plugins` shows the result. Throws `not_found` for a plugin that is not switched on, and the error of a
	 * refused reload.
	 */
	reload(plugin: string): Promise<void>
	/**
	 * The format in which records are stored: that of this version or, until the operators of a cluster raise it, of the one before
	 * (`oldestWritten` of core/store/format.ts).
	 */
	dataFormat(): number
	/** Where the data is, if it is in a cluster; null otherwise. */
	storeCluster(): ClusterStatus | null
	/** The gateways on the same data that answer at this moment, this one included. On a cluster it takes most of a second. */
	gateways(): Promise<GatewayMember[]>
	/** The threads that waiting gateways lend to this one; null if its data is not in a cluster. */
	lentThreads(): LentThreads[] | null
	/** How many requests other gateways of the cluster have forwarded to this one; null if its data is not in a cluster. */
	forwardedRequests(): number | null
	/** HTTP requests whose answers have not ended yet, open streams among them. */
	openRequests(): number
	/** How many uncaught errors the gateway itself has had since its start; the log has them. */
	uncaughtErrors(): number
	/** Such as `http://127.0.0.1:3000`; null if it does not listen. */
	url(address: Address): string | null
	/** Where others reach it, without a slash at the end: `server.public_url`, else where it listens; null if it does not. */
	publicUrl(): string | null
}
