/** The engines that plugins provide, found by their file `engine.ts`. */
import { Fault } from '../errors.ts'
import { ownParts } from '../util/own-files.ts'
import type { EngineModule } from './contract.ts'

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
