/** What the built-in plugins know of their health, found by their file `doctor.ts`. They load heavy packages when a check runs. */
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import type { Config } from '../../../config/types.ts'
import { isOn } from '../../host/desired-state.ts'
import { importOwn } from '../../util/own-code.ts'
import type { Expert } from './contract.ts'

const folder = new URL('../../../plugins/', import.meta.url)
let found: Promise<Map<string, Expert>> | undefined

/** By plugin. */
export function expertsByPlugin(): Promise<Map<string, Expert>> {
	return (found ??= read())
}

export async function allExperts(): Promise<Expert[]> {
	return [...(await expertsByPlugin()).values()]
}

/** Without those of plugins that are switched off. */
export async function expertsFor(config: Config): Promise<Expert[]> {
	return [...(await expertsByPlugin())].flatMap(([name, expert]) => (isOn(config, name) ? expert : []))
}

async function read(): Promise<Map<string, Expert>> {
	const names = (await readdir(folder)).filter((name) => existsSync(new URL(`${name}/doctor.ts`, folder))).toSorted()
	return new Map(
		await Promise.all(
			names.map(async (name): Promise<[string, Expert]> => {
				const { default: expert } = (await importOwn(new URL(`${name}/doctor.ts`, folder))) as { default: Expert }
				return [name, expert]
			}),
		),
	)
}
