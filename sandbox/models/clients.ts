import type { ModelOrder } from '../../core/protocol.ts'

/** Clients of one SDK that are kept. One is cheap to make; what costs is only doing so for every call. */
const CACHE_LIMIT = 16

/**
 * Keeps the clients that `make` makes, by all that goes into one. Connections are kept alive by Node itself, for all
 * clients together.
 */
export function clientCache<Client>(make: (order: ModelOrder) => Client): (order: ModelOrder) => Client {
	const clients = new Map<string, Client>()
	return (order) => {
		const { base_url, api_key, headers, query } = order
		const name = JSON.stringify([base_url, api_key, headers, query])
		const client = clients.get(name) ?? make(order)
		clients.delete(name)
		clients.set(name, client)
		const [oldest] = clients.keys()
		if (clients.size > CACHE_LIMIT && oldest !== undefined) clients.delete(oldest)
		return client
	}
}
