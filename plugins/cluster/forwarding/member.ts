/** A gateway among several on one cluster: first it waits, then it works and tells the others where it is. */
import { hostname } from 'node:os'
import type { Member, MemberOptions } from '../../../core/engines/contract.ts'
import { messageOf } from '../../../core/errors.ts'
import type { Config } from '../../../core/host/config.ts'
import type { Tenure } from '../../../core/store/ports.ts'
import { acceptForwarded } from './accept.ts'
import { secretFrom } from './secret.ts'
import type { Secret } from './secret.ts'
import { openStandby } from './standby.ts'

/** The key may be changed, and the gateway may get another address, while it works. */
const ADVERTISE_MS = 1_000

export function openMember({ config, listeners, log, installationKey, listening }: MemberOptions): Member {
	const { store, server, legacy } = config
	const secretNow = async (): Promise<Secret> => secretFrom(await installationKey(), store.prefix)
	const standby = openStandby({
		listeners,
		listen: {
			main: { host: server.host, port: server.port },
			legacy: { host: server.host, port: legacy.port },
		},
		log,
		secret: secretNow,
		listening,
	})
	let secret: Secret | null = null
	let forwarded = 0
	let timer: NodeJS.Timeout | undefined
	let lastAdvertised = ''
	let isTroubled = false

	const advertise = async (tenure: Tenure): Promise<void> => {
		try {
			secret = await secretNow()
			isTroubled = false
		} catch (error) {
			if (!isTroubled) log.warn(`gateways that wait cannot forward requests to this one: ${messageOf(error)}`)
			isTroubled = true
			return
		}
		const [main, older] = [listeners.url('main'), listeners.url('legacy')].map((url) => url && advertised(url, config))
		if (!main) return
		const address = { main, legacy: older ?? null, key_check: secret.checkOf(tenure.id) }
		if (JSON.stringify(address) === lastAdvertised) return
		lastAdvertised = JSON.stringify(address)
		tenure.advertise(address)
	}

	return {
		onLeaseObserved: (lease) => standby.onLeaseObserved(lease),
		accept: ({ id }) => acceptForwarded({ tenure: id, secret: () => secret, taken: () => forwarded++ }),
		async serves(tenure) {
			standby.served()
			await advertise(tenure)
			timer = setInterval(() => void advertise(tenure), ADVERTISE_MS).unref()
		},
		forwarded: () => forwarded,
		async [Symbol.asyncDispose]() {
			clearInterval(timer)
			await standby[Symbol.asyncDispose]()
		},
	}
}

/** Where others reach what listens at `url`: the name is a setting, the port the real one. */
function advertised(url: string, { store, server }: Config): string {
	const { port } = new URL(url)
	const isEverywhere = server.host === '0.0.0.0' || server.host === '::'
	const name = store.advertise ?? (isEverywhere ? hostname() : server.host)
	return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
