/** From the settings of the store to the engine, and to the connection to the cluster. */
import { readFileSync, statSync } from 'node:fs'
import type { EngineRequest } from '../../core/engines/contract.ts'
import type { Engine } from '../../core/store/ports.ts'
import type { ClusterSettings } from './contract.ts'
import type { ClientOptions } from './nats/client.ts'
import { openNats } from './nats/open.ts'

/** As `EngineModule.open`; `store.url` must not be null. */
export async function openStore({ store, home, ...request }: EngineRequest): Promise<Engine> {
	const { prefix, replicas, format } = store
	return openNats({
		...clientOptions(store),
		...request,
		prefix,
		replicas,
		wantedFormat: format,
		home: homeIdentity(home),
	})
}

/** How a client reaches the cluster; `url` must not be null. */
export function clientOptions({
	url,
	credentials_file,
	tls,
}: Pick<ClusterSettings, 'url' | 'credentials_file' | 'tls'>): ClientOptions {
	return {
		url: url as string,
		credentials_file: credentials_file ?? undefined,
		tls: {
			ca_file: tls.ca_file ?? undefined,
			cert_file: tls.cert_file ?? undefined,
			key_file: tls.key_file ?? undefined,
		},
	}
}

/**
 * What distinguishes this home from any other, also from a copy of it: a process that holds its lock need not wait for an
 * earlier one that was killed. Undefined where the system cannot say it surely.
 */
function homeIdentity(home: string): string | undefined {
	try {
		const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
		const { dev, ino } = statSync(home)
		return `${boot} ${dev} ${ino}`
	} catch {
		return undefined
	}
}
