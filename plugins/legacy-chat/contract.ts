import type { OpenRequest, OpenRequests, StreamSettings } from '../auth/contract.ts'

export interface ChatSettings extends StreamSettings {
	/** Requests that may wait for their replies at the same time, streams included; the next one gets 503. */
	max_waiting: number
	max_sockets: number
	/** Seconds between pings of a WebSocket; if one is not answered before the next, the WebSocket is closed. */
	ping_s: number
}

export interface LegacyChat {
	/** Requests that wait for a reply, streams included. */
	readonly waiting: OpenRequests<OpenRequest>
}

declare module '../../config/types.ts' {
	interface Config {
		'legacy-chat': ChatSettings
	}
}
