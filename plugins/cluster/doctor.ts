/** The check of `svc doctor`: whether the cluster can be used, and which gateways are connected to it. */
import { error, note, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { Check, CheckContext, DoctorFile, Finding } from '../../core/cli/doctor/contract.ts'
import { isFault } from '../../core/errors.ts'
import { format } from '../../core/store/format.ts'
import type { Health } from '../../core/status.ts'
import { pluralize } from '../../core/util/pluralize.ts'
import type { ClusterFindings } from './nats/inspect.ts'

const clusterCheck: Check = {
	id: 'store.cluster',
	about: 'whether the cluster can be used',
	async run(context) {
		const { store } = await context.config()
		const { url, replicas } = store
		if (url === null) return []
		const { inspectCluster } = await import('./nats/inspect.ts')
		const found = await inspectCluster({ ...store, url }).catch((thrown: unknown) => {
			if (isFault(thrown, 'unavailable')) return thrown
			throw thrown
		})
		if (isFault(found))
			return error(found.message, 'follow the message, then check again: svc doctor --only store.cluster')
		const behind = found.streams.flatMap((one) => one.behind.map((server) => `${one.name} on ${server}`))
		if (behind.length > 0)
			return warning(
				`copies that are not up to date: ${behind.join(', ')}`,
				'start the servers that are down; with a second one down, the gateway could neither read nor write',
			)
		const [state] = found.streams
		if (!state) return ok(`${found.server} answers; nothing is stored there yet`)
		if (found.address !== null && !(await isAlive(context, found.address))) {
			// If no working gateway answers on the cluster either, the address is not the problem.
			if (!found.gateways.some(({ works }) => works)) return noneWorks(found)
			return warning(
				`the gateway ${found.holder} works on the cluster, and cannot be reached from here at ${found.address}`,
				'waiting gateways forward requests to that address: set server.host there to an address that they reach, or store.advertise',
			)
		}
		const members = found.gateways.map(
			({ name, version, works }) => `${name} (${version}, ${works ? 'works' : 'waits'})`,
		)
		const oldest = Math.min(...found.gateways.map((one) => one.format))
		if (found.format !== null && found.gateways.length > 0 && oldest > found.format)
			return note(
				`the data has format ${found.format}, and every gateway that answers reads a newer one: ${members.join(', ')}`,
				`once you no longer need an older version, set store.format to ${format} and restart the gateways: docs/cluster.md`,
			)
		const at = found.address === null ? '' : ` at ${found.address}`
		const holder = found.holder === null ? 'no gateway works on it' : `the gateway ${found.holder} works on it${at}`
		const health = await (await context.gateway())?.get<Health>('/v1/health')
		const threads = health?.checks.find(({ name }) => name === 'threads')
		return ok(
			`${found.server} answers, ${state.leader} leads, ${pluralize(replicas, 'copy', 'copies')}; ${holder}; gateways: ${members.join(', ') || 'none'}${threads ? `; threads: ${threads.message}` : ''}`,
		)
	},
}

export default { checks: [clusterCheck] } satisfies DoctorFile

function noneWorks({ holder, gateways }: ClusterFindings): Finding {
	const problem = `no gateway works on the data of the cluster at the moment: ${holder} does not answer`
	return gateways.length > 0
		? warning(
				`${problem}; a waiting gateway takes over within 15 s after the lease was last renewed`,
				'check again in 20 s: svc doctor --only store.cluster',
			)
		: warning(`${problem}, and no other gateway waits`, 'start one: svc start')
}

async function isAlive({ ask }: CheckContext, address: string): Promise<boolean> {
	try {
		return (await ask(`${address}/healthz`)).status === 200
	} catch (thrown) {
		if (isFault(thrown)) return false
		throw thrown
	}
}
