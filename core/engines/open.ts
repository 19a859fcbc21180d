/** Selects the engine that stores the data: LMDB, or one of a plugin, found by its file `engine.ts`. */
import { Fault } from '../errors.ts'
import { openLmdb } from '../store/lmdb/open.ts'
import type { Engine } from '../store/ports.ts'
import { ownParts } from '../util/own-files.ts'
import type { EngineModule, EngineRequest } from './contract.ts'

/**
 * Opens the data in the folder `store.path` or, with `store.url`, with the engine of a plugin. Throws `config_invalid` if no
 * engine serves the address, else `store_damaged` or `unavailable`, with what to do. LMDB would end the process on a damaged
 * data file, so call `checkFolder` of core/backup first.
 */
export async function openEngine(request: EngineRequest): Promise<Engine> {
	const { store, log } = request
	const { path, min_free_mib, url } = store
	if (url === null) return openLmdb({ path, minFreeBytes: min_free_mib * 1024 * 1024, ...(log && { log }) })
	return (await engineFor(url)).open(request)
}

/** `url`: one address, or several of one scheme. Throws `config_invalid` if no engine serves its scheme. */
export async function engineFor(url: string): Promise<EngineModule> {
	const modules = [...(await ownParts<EngineModule>('engine.ts')).values()]
	const scheme = url.trim().split(':', 1)[0] as string
	const found = modules.find(({ schemes }) => schemes.includes(scheme))
	if (found) return found
	const known = modules.flatMap(({ schemes }) => schemes.map((one) => `${one}://`))
	// Not the address itself, which may hold a password.
	throw new Fault(
		'config_invalid',
		`store.url: no engine serves addresses that begin with "${scheme}:"; there are: ${known.join(', ')}`,
	)
}
