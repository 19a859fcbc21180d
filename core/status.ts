import type { Address } from './http/listening.ts'
import type { ClusterStatus } from './store/ports.ts'

export interface PluginStatus {
	name: string
	version: string | null
	/** `failing`: it runs, but since its last start an error of its own was thrown and nothing caught it. */
	state: 'running' | 'failing' | 'failed'
	/** Why it does not run, or not as its files now are; the error that it did not catch; or the problem that it reports. */
	last_error: string | null
	/** The generation in which this instance began to serve. */
	generation: number | null
	source: string | null
	since: string | null
}

/** `migrating`: the home is upgraded, before plugins start. */
export type GatewayState = 'migrating' | 'starting' | 'ready' | 'draining'

/** What plugins may know of the gateway. */
export interface GatewayStatus {
	readonly version: string
	readonly home: string
	readonly started_at: string
	state(): GatewayState
	generation(): number
	/** By name. */
	plugins(): PluginStatus[]
	/** Why the current configuration file is not in force; null if it is. */
	configError(): string | null
	/** Why writes are refused; null if they are not. */
	storeTrouble(): string | null
	/** The store's size and its free disk space, in bytes; null if it has no disk of its own. */
	storeSpace(): { bytes: number; free_bytes: number } | null
	/** Where the data is, if it is in a cluster; null otherwise. */
	/**
	 * The format in which records are stored: that of this version or, until the operators of a cluster raise it, of the one before
	 * (`oldestWritten` of core/store/format.ts).
	 */
	dataFormat(): number
	storeCluster(): ClusterStatus | null
	/** How many requests other gateways of the cluster have forwarded to this one; null if its data is not in a cluster. */
	forwardedRequests(): number | null
	/** HTTP requests whose answers have not ended yet, open streams among them. */
	openRequests(): number
	/** How many uncaught errors the gateway itself has had since its start; the log has them. */
	uncaughtErrors(): number
	/** Such as `http://127.0.0.1:3000`; null if it does not listen. */
	url(address: Address): string | null
	/** Where others reach it: `server.public_url`, else where it listens; null if it does not. */
	publicUrl(): string | null
}
