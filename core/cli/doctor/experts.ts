/** What the built-in plugins know of their health, found by their file `doctor.ts`. They load heavy packages when a check runs. */
import type { Config } from '../../../config/types.ts'
import { isOn } from '../../host/desired-state.ts'
import { ownParts } from '../../util/own-files.ts'
import type { Expert } from './contract.ts'

let found: Promise<Map<string, Expert>> | undefined

/** By plugin. */
export function expertsByPlugin(): Promise<Map<string, Expert>> {
	return (found ??= ownParts('doctor.ts'))
}

export async function allExperts(): Promise<Expert[]> {
	return [...(await expertsByPlugin()).values()]
}

/** Without those of plugins that are switched off. */
export async function expertsFor(config: Config): Promise<Expert[]> {
	return [...(await expertsByPlugin())].flatMap(([name, expert]) => (isOn(config, name) ? expert : []))
}
