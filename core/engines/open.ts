import { openLmdb } from '../store/lmdb/open.ts'
import type { Engine } from '../store/ports.ts'
import type { EngineRequest } from './contract.ts'
import { engineFor } from './find.ts'

/**
 * Opens the data where the settings say: in the folder `store.path` or, with `store.url`, with the engine of a plugin's folder. Throws
 * `config_invalid` if no engine serves the address, else `store_damaged` or `unavailable`, with what to do. LMDB would end the
 * process on a damaged data file, so call `checkFolder` of core/backup first.
 */
export async function openEngine(request: EngineRequest): Promise<Engine> {
	const { store, log } = request
	const { path, min_free_mib, url } = store
	if (url === null) return openLmdb({ path, minFreeBytes: min_free_mib * 1024 * 1024, ...(log && { log }) })
	return (await engineFor(url)).open(request)
}
