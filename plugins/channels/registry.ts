import type { Bindings } from './bindings.ts'
import type { Connections } from './connections.ts'
import type { Directory } from './directory.ts'
import type { Pairing } from './pairing.ts'
import type { Registry } from './parts.ts'

/** The part of this half that the dialogue uses. */
export function registryOf(
	directory: Directory,
	connections: Connections,
	bindings: Bindings,
	pairing: Pairing,
): Registry {
	return {
		channel: connections.live,
		bound: bindings.bound,
		pairingCode: pairing.issue,
		async chatOf(binding_id) {
			for (const { id } of await directory.list()) {
				const chat_id = await bindings.chatOf(id, binding_id)
				if (chat_id !== undefined) return { channel_id: id, chat_id }
			}
			return undefined
		},
		async named(name) {
			if (await directory.find(name)) return name
			const type = connections.adapters().find(name)?.type ?? name
			const [first, second] = (await directory.list()).filter((channel) => channel.type === type)
			return second ? undefined : first?.id
		},
		onConnected: connections.onConnected,
	}
}
