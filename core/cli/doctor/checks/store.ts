import { isFault } from '../../../errors.ts'
import { format } from '../../../store/format.ts'
import { addressOf } from '../../../store/open.ts'
import { error, note, ok, warning } from '../contract.ts'
import type { Check, Patient } from '../contract.ts'

interface Readiness {
	checks: { name: string; ok: boolean; message: string }[]
}

async function isAlive({ ask }: Patient, address: string): Promise<boolean> {
	try {
		return (await ask(`${address}/healthz`)).status === 200
	} catch (thrown) {
		if (isFault(thrown)) return false
		throw thrown
	}
}

export const storeChecks: Check[] = [
	{
		id: 'store.intact',
		about: 'whether the data file is whole',
		async run(patient) {
			if ((await patient.config()).store.url !== null) return []
			const verdict = await patient.storeVerdict()
			if (!verdict) return ok('there is no data yet')
			const { damage, refused, complete, pages, records } = verdict
			const { path } = (await patient.config()).store
			if (damage !== null)
				return error(
					`the data file in ${path} is damaged: ${damage}`,
					`stop the gateway, move the folder ${path} away and restore a backup: svc restore FILE`,
				)
			if (refused !== null)
				return error(
					`the data file in ${path} cannot be read: ${refused}`,
					'fix what the message names, and what native.lmdb reports; if that does not help, restore a backup: svc restore FILE',
				)
			return ok(
				complete
					? `the data file is whole: ${records} records on ${pages} pages`
					: `the data file is large; ${pages} of its pages were looked at, all whole`,
			)
		},
	},
	{
		id: 'store.cluster',
		about: 'whether the cluster can be used',
		async run(patient) {
			const { url, prefix, replicas, ...files } = (await patient.config()).store
			if (url === null) return []
			const { inspectCluster } = await import('../../../store/nats/inspect.ts')
			const found = await inspectCluster({ ...addressOf({ url, ...files }), prefix }).catch((thrown: unknown) => {
				if (isFault(thrown, 'unavailable')) return thrown
				throw thrown
			})
			if (isFault(found))
				return error(found.message, 'do what the message says, then check again: svc doctor --only store.cluster')
			const behind = found.streams.flatMap((one) => one.behind.map((server) => `${one.name} on ${server}`))
			if (behind.length > 0)
				return warning(
					`copies that are not up to date: ${behind.join(', ')}`,
					'start the servers that are down; with a second one down, the gateway could neither read nor write',
				)
			const [state] = found.streams
			if (!state) return ok(`${found.server} answers; nothing is stored there yet`)
			if (found.address !== null && !(await isAlive(patient, found.address)))
				return warning(
					`the gateway ${found.holder} works on the cluster, and cannot be reached from here at ${found.address}`,
					'gateways that wait forward requests to that address: set server.host there to an address that they reach, or store.advertise',
				)
			const members = found.gateways.map(
				({ name, version, works }) => `${name} (${version}, ${works ? 'works' : 'waits'})`,
			)
			if (
				found.format !== null &&
				found.gateways.length > 0 &&
				found.gateways.every((one) => one.format > (found.format ?? 0))
			)
				return note(
					`the data has format ${found.format}, and every gateway that answers reads a newer one: ${members.join(', ')}`,
					`once no older gateway is needed again, set store.format to ${format} and restart the gateways: docs/cluster.md`,
				)
			const at = found.address === null ? '' : ` at ${found.address}`
			const holder = found.holder === null ? 'no gateway works on it' : `the gateway ${found.holder} works on it${at}`
			return ok(
				`${found.server} answers, ${state.leader} leads, ${replicas} ${replicas === 1 ? 'copy' : 'copies'}; ${holder}; gateways: ${members.join(', ') || 'none'}`,
			)
		},
	},
	{
		id: 'store.writes',
		about: 'whether the store takes writes',
		async run(patient) {
			const gateway = await patient.gateway()
			if (!gateway) return []
			const { checks } = await gateway.get<Readiness>('/v1/health')
			const check = checks.find(({ name }) => name === 'store')
			if (!check || check.ok) return ok('the store takes writes')
			// The message ends with what to do: a full disk needs no restart, a failed write does.
			return error(
				`the store ${check.message}`,
				'do what the message says, then check again: svc doctor --only store.writes',
			)
		},
	},
]
