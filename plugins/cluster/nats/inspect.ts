import { Fault } from '../../../core/errors.ts'
import { openClient } from './client.ts'
import type { ClientOptions } from './client.ts'
import type { ClusterMember } from '../../../core/store/ports.ts'
import { holderOf } from './lease.ts'
import { storedMark } from './open.ts'
import { discoverGateways } from './discovery.ts'
import { infoOf, namesOf } from './streams.ts'

export interface ClusterFindings {
	/** The server that answered. */
	server: string
	/** The gateway that holds the lease; null if none does. */
	holder: string | null
	/** The holder's address for other gateways; null if it has not advertised one. */
	address: string | null
	/** Gateways that answer, the working one first. */
	gateways: ClusterMember[]
	/** Format of the data; null before the first start. */
	format: number | null
	streams: {
		name: string
		leader: string | null
		/** Names of the servers whose copy is not up to date. */
		behind: string[]
	}[]
}

/** The state of the cluster, read without a gateway. `streams` is empty before the first start. Throws `unavailable` with what to change. */
export async function inspectCluster(options: ClientOptions & { prefix: string }): Promise<ClusterFindings> {
	const client = await openClient(options)
	try {
		const names = namesOf(options.prefix)
		const server = client.serverName()
		const streams: ClusterFindings['streams'] = []
		for (const name of [names.state, names.events]) {
			const info = await infoOf(client, name).catch((error: unknown) => {
				if (error instanceof Fault && /not found/.test(error.message)) return undefined
				throw error
			})
			if (!info) return { server, holder: null, address: null, gateways: [], format: null, streams: [] }
			const { leader = server, replicas = [] } = info.cluster ?? {}
			streams.push({
				name,
				leader,
				behind: replicas.flatMap((one) => (one.current ? [] : one.name)),
			})
		}
		const found = await holderOf(client, names)
		return {
			server,
			holder: found?.holder ?? null,
			address: found?.address?.main ?? null,
			gateways: await discoverGateways(client, names),
			format: (await storedMark(client, names))?.format ?? null,
			streams,
		}
	} finally {
		await client.close()
	}
}
