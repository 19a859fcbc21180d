/** The connections of one fetcher. */
import { Agent } from 'undici'
import type { FetchPolicy } from './policy.ts'
import { checkedConnector } from './connector.ts'
import type { Hop } from './hops.ts'
import type { Lookup } from './lookup.ts'

const HEADER_BYTES = 16 * 1024
/** Of one fetcher, and connections to each. */
const ORIGINS = 16
const CONNECTIONS = 64

interface Limits {
	policy: FetchPolicy
	lookup: Lookup
	max_bytes: number
	idle_ms?: number
}

export interface Connections {
	of(hop: Pick<Hop, 'named'>): Agent
	destroy(): Promise<void>
}

/** Two pools: a connection that was allowed for the named origin must not serve a redirect to the same place. */
export function openConnections({ policy, lookup, idle_ms = 0, max_bytes }: Limits): Connections {
	const open = (named: boolean): Agent =>
		new Agent({
			connect: checkedConnector(policy, named, lookup),
			allowH2: false,
			maxOrigins: ORIGINS,
			connections: CONNECTIONS,
			maxHeaderSize: HEADER_BYTES,
			headersTimeout: idle_ms,
			bodyTimeout: idle_ms,
			// As it comes over the wire: compressed data that unpacks to nothing has no end otherwise.
			maxResponseSize: max_bytes === Infinity ? -1 : max_bytes + 1024,
		})
	let named: Agent | undefined
	let others: Agent | undefined
	return {
		of: (hop) => (hop.named ? (named ??= open(true)) : (others ??= open(false))),
		async destroy() {
			await Promise.all([named?.destroy(), others?.destroy()])
		},
	}
}
