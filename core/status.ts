import type { Address } from './plugin.ts'

export interface PluginStatus {
	name: string
	version: string | null
	state: 'running' | 'failed'
	/** Why it does not run, or not as its files now are, or what it says is wrong with it. */
	last_error: string | null
	/** The generation in which this instance began to serve. */
	generation: number | null
	source: string | null
	since: string | null
}

export type GatewayState = 'starting' | 'ready' | 'draining'

/** What plugins may know of the gateway. */
export interface GatewayStatus {
	readonly version: string
	readonly home: string
	readonly started_at: string
	state(): GatewayState
	generation(): number
	/** By name. */
	plugins(): PluginStatus[]
	/** Why the configuration as its file now stands is not in force; null where it is. */
	configError(): string | null
	/** Why writes are refused; null where they are not. */
	storeTrouble(): string | null
	/** What the store takes and has left on its disk, in bytes; null where it has no disk of its own. */
	storeSpace(): { bytes: number; free_bytes: number } | null
	/** HTTP requests whose answers have not ended yet, open streams among them. */
	openRequests(): number
	/** Such as `http://127.0.0.1:3000`; null where it does not listen. */
	url(address: Address): string | null
}
