import { readFileSync, statSync } from 'node:fs'
import type { StoreSettings } from '../../config/types.ts'
import type { Logger } from '../log/log.ts'
import { openLmdb } from './lmdb/open.ts'
import type { Engine, ObservedLease } from './ports.ts'

export interface EngineRequest {
	store: StoreSettings
	/** Of the program, for other gateways. */
	version?: string
	/** This process holds its lock. */
	home: string
	log?: Logger
	/** Ends a wait for another gateway. */
	signal?: AbortSignal
	/** Called often while it waits for another gateway, with what it found; and with null when it takes over. */
	onLeaseObserved?: (found: ObservedLease | null) => void | Promise<void>
}

/**
 * Opens the data where the settings say: in a folder, or in a cluster. There only one gateway at a time works on it, so this
 * waits until no other one does. Throws `store_damaged` or `unavailable`, with what to do. LMDB would end the process on a
 * damaged data file, so call `checkFolder` of core/backup first.
 */
export async function openEngine({ store, version, home, log, signal, onLeaseObserved }: EngineRequest): Promise<Engine> {
	const { path, min_free_mib, url, prefix, replicas, credentials_file, tls } = store
	if (url === null) return openLmdb({ path, minFreeBytes: min_free_mib * 1024 * 1024, ...(log && { log }) })
	// Only then: a gateway on one machine must not load its client.
	const { openNats } = await import('./nats/open.ts')
	return openNats({
		...addressOf({ url, credentials_file, tls }),
		prefix,
		replicas,
		version,
		home: homeIdentity(home),
		log,
		signal,
		onLeaseObserved,
	})
}

/** How a client reaches the cluster. */
export function addressOf({
	url,
	credentials_file,
	tls,
}: Pick<StoreSettings, 'credentials_file' | 'tls'> & { url: string }) {
	return {
		url,
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
