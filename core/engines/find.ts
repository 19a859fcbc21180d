/** The engines that plugins provide, found by their file `engine.ts`. */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { Fault } from '../errors.ts'
import { importOwn } from '../util/own-code.ts'
import type { EngineModule } from './contract.ts'

const folder = new URL('../../plugins/', import.meta.url)

/** `url`: one address, or several of one scheme. Throws `config_invalid` if no engine serves its scheme. */
export async function engineFor(url: string): Promise<EngineModule> {
	const modules = await allEngines()
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

async function allEngines(): Promise<EngineModule[]> {
	const files = (await readdir(folder))
		.toSorted()
		.map((name) => new URL(`${name}/engine.ts`, folder))
		.filter((file) => existsSync(file))
	return Promise.all(files.map(async (file) => ((await importOwn(file)) as { default: EngineModule }).default))
}
