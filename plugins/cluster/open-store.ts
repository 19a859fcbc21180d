/** From the settings of the store to the engine. */
import { readFileSync, statSync } from 'node:fs'
import type { EngineRequest } from '../../core/engines/contract.ts'
import type { Engine } from '../../core/store/ports.ts'
import { openNats } from './nats/open.ts'

/** As `EngineModule.open`; `store.url` must not be null. */
export async function openStore({ store, home, ...request }: EngineRequest): Promise<Engine> {
	const { url, format, ...others } = store
	return openNats({ ...others, ...request, url: url as string, wantedFormat: format, home: homeIdentity(home) })
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
