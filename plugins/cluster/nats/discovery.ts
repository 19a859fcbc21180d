/**
 * Discovers the gateways on a cluster: every gateway, working or waiting, answers requests to one subject. Nothing is stored, so a
 * gateway that is down or disconnected is not found.
 */
import type { ClusterMember } from '../../../core/store/ports.ts'
import type { Client } from './client.ts'
import type { Names } from './streams.ts'

/** How long to wait for answers: a gateway whose event loop is busy needs some time. */
const WAIT_MS = 750

/** Answers until the connection ends. */
export function answerDiscovery(client: Client, names: Names, self: () => ClusterMember): void {
	client.respond(subjectOf(names), () => JSON.stringify(self()))
}

/** Takes 750 ms. The working gateway comes first, the others follow by name. Throws `unavailable` if the cluster cannot be asked. */
export async function discoverGateways(client: Client, names: Names): Promise<ClusterMember[]> {
	const found = await client.askAll<ClusterMember>(subjectOf(names), WAIT_MS)
	return found.toSorted((a, b) => Number(b.works) - Number(a.works) || (a.name < b.name ? -1 : 1))
}

function subjectOf({ prefix }: Names): string {
	return `${prefix}.gateways`
}
