/** Finds what a gateway would refuse in a configuration, without starting one. */
import { join } from 'node:path'
import { warn, warningsOf } from '../../config/read.ts'
import type { Config } from '../../config/types.ts'
import { messageOf } from '../errors.ts'
import { isAllowed, sharedIn } from '../process/shared-home.ts'
import { desiredState } from './desired-state.ts'

/**
 * Checks what `readConfig` does not: the settings of third-party plugins, and whether the plugins that others need are on. Runs
 * the code of third-party plugins, as the gateway does. Throws `config_invalid` as `readConfig` does. Returns a line for
 * each plugin that the gateway would leave out, and for each former name, as `file:line:column: path: what is wrong`.
 * `thirdParties`: if false, the code of third-party plugins is not run, and their settings are not checked.
 */
export async function checkConfig(
	config: Config,
	{ home, env, thirdParties = true }: { home: string; env: Readonly<NodeJS.ProcessEnv>; thirdParties?: boolean },
): Promise<string[]> {
	const { plugins, refuse } = desiredState(config)
	const checked = thirdParties ? plugins : plugins.filter(({ builtIn }) => builtIn)
	// Loaded here only: joi and the plugins' code are slow to load.
	const [{ definitionsOf }, { Loader }] = await Promise.all([import('./definition.ts'), import('./loader.ts')])
	const refusal = (folder: string): string | undefined => (isAllowed(env) ? undefined : sharedIn(folder, home)?.problem)
	const loader = new Loader(join(home, 'plugins'), refusal)
	const { problems, broken } = await definitionsOf(checked, loader)
	if (problems.size > 0) throw refuse([...problems.values()].flat())
	const omitted = [...broken].map(([name, error]) =>
		warn(config, { path: `plugins.${name}`, message: messageOf(error), part: 'key' }),
	)
	return [...warningsOf(config), ...omitted]
}
