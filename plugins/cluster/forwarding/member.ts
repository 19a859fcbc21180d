/** A gateway among several on one cluster: it first waits, then works and advertises its address to the others. */
import { hostname } from 'node:os'
import type { Member, MemberOptions } from '../../../core/engines/contract.ts'
import { messageOf } from '../../../core/errors.ts'
import type { Config } from '../../../core/host/config.ts'
import { HEAP_MIB } from '../../../core/runs/run-pool.ts'
import type { Tenure } from '../../../core/store/ports.ts'
import { ownName } from '../../../core/util/own-name.ts'
import { version } from '../../../core/version.ts'
import { acceptForwarded } from './accept.ts'
import { secretFrom } from './proof.ts'
import type { Secret } from './proof.ts'
import { openBorrower } from './threads/borrower.ts'
import type { Borrower } from './threads/borrower.ts'
import { openLender } from './threads/lender.ts'
import { PROTOCOL } from './threads/protocol.ts'
import { openStandby } from './standby.ts'

/** Interval of checking whether the key or the address has changed while the gateway works. */
const ADVERTISE_MS = 1_000

export function openMember(options: MemberOptions): Member {
	const { config, listeners, log, installationKey, listening, worker } = options
	const { store, server, legacy, workers } = config
	listeners.protocols.add(PROTOCOL)
	const lender = workers.lend
		? openLender({ name: ownName, version, worker, ...workers, heap_mib: HEAP_MIB, log })
		: null
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
		routed: (route) => lender?.follow(route),
	})
	let borrower: Borrower | undefined
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
			if (!isTroubled) log.warn(`waiting gateways cannot forward requests to this one: ${messageOf(error)}`)
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
		accept({ id: tenure }, pool) {
			borrower = openBorrower({ tenure, version, secret: () => secret, pool, log })
			return acceptForwarded({ tenure, secret: () => secret, accepted: () => forwarded++, borrower })
		},
		async serves(tenure) {
			standby.served()
			await advertise(tenure)
			timer = setInterval(() => void advertise(tenure), ADVERTISE_MS).unref()
		},
		forwarded: () => forwarded,
		async [Symbol.asyncDispose]() {
			clearInterval(timer)
			borrower?.close()
			await lender?.close(server.shutdown_grace_s * 1000)
			await standby[Symbol.asyncDispose]()
		},
	}
}

/** The URL at which others reach the listener at `url`: its port, with the configured host name. */
function advertised(url: string, { store, server }: Config): string {
	const { port } = new URL(url)
	const isEverywhere = server.host === '0.0.0.0' || server.host === '::'
	const name = store.advertise ?? (isEverywhere ? hostname() : server.host)
	return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
