/**
 * Which gateways there are at this moment: each one on the cluster, also a waiting one, answers a request to one subject. Nothing
 * is stored, so a gateway that is down or cut off is not among them.
 */
import type { ClusterMember } from '../../../core/store/ports.ts'
import type { Client } from './client.ts'
import type { Names } from './streams.ts'

/** For answers: a gateway that is busy with a long step needs some time. */
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
