import type { Bindings } from './bindings.ts'
import type { Connections } from './connections.ts'
import type { Pairing } from './pairing.ts'
import type { Registry } from './parts.ts'

/** The part of this half that the dialogue uses. */
export function registryOf(connections: Connections, bindings: Bindings, pairing: Pairing): Registry {
	return {
		channel: connections.live,
		bound: bindings.bound,
		pairingCode: pairing.issue,
		onConnected: connections.onConnected,
	}
}
