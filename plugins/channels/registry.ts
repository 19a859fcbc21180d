import type { Bindings } from './bindings.ts'
import type { Connections } from './connections.ts'
import type { Directory } from './directory.ts'
import type { Pairing } from './pairing.ts'

export type Registry = ReturnType<typeof registryOf>

/** The registry as the dialogue sees it. */
export function registryOf(directory: Directory, connections: Connections, bindings: Bindings, pairing: Pairing) {
	return {
		channel: connections.live,
		delayed: connections.delayed,
		bound: bindings.bound,
		pairingCode: pairing.issue,
		/** The chat of a binding; undefined if there is no such binding. */
		async chatOf(binding_id: string): Promise<{ channel_id: string; chat_id: string } | undefined> {
			for (const { id } of await directory.list()) {
				const chat_id = await bindings.chatOf(id, binding_id)
				if (chat_id !== undefined) return { channel_id: id, chat_id }
			}
			return undefined
		},
		/** Finds a channel by id, or by a type or alias that only one channel has. Returns its id. */
		async named(name: string): Promise<string | undefined> {
			if (await directory.find(name)) return name
			const type = connections.adapters().find(name)?.type ?? name
			const [first, second] = (await directory.list()).filter((channel) => channel.type === type)
			return second ? undefined : first?.id
		},
	}
}
