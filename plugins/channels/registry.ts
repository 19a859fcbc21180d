import type { Bindings } from './bindings.ts'
import type { Connections } from './connections.ts'
import type { Directory } from './directory.ts'
import type { Pairing } from './pairing.ts'

export type Registry = ReturnType<typeof registryOf>

/** What the dialogue uses of the registry. */
export function registryOf(directory: Directory, connections: Connections, bindings: Bindings, pairing: Pairing) {
	return {
		channel: connections.live,
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
		/** The id of a channel that is named by its id, or by its type or an alias of it if only one channel has it. */
		async named(name: string): Promise<string | undefined> {
			if (await directory.find(name)) return name
			const type = connections.adapters().find(name)?.type ?? name
			const [first, second] = (await directory.list()).filter((channel) => channel.type === type)
			return second ? undefined : first?.id
		},
	}
}
