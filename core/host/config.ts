/** Binds `config/` to the settings of the built-in plugins, which are found in `plugins/<name>/settings.ts`. */
import type { KeyObject } from 'node:crypto'
import { compose } from '../../config/composition.ts'
import type { DeclaredPlugin } from '../../config/composition.ts'
import type { SettingsDeclaration } from '../../config/declaration.ts'
import * as environment from '../../config/environment.ts'
import * as explaining from '../../config/explain.ts'
import type { Environment } from '../../config/home.ts'
import * as reading from '../../config/read.ts'
import * as sections from '../../config/sections.ts'
import * as writing from '../../config/write.ts'
import { Fault } from '../errors.ts'
import { ownFiles, ownParts } from '../util/own-files.ts'

export { isAppliedAtStart } from '../../config/core-sections.ts'
export { setSetting, settingAt, unsetSetting } from '../../config/edit.ts'
export { pathOf } from '../../config/explain.ts'
export { prepareHome } from '../../config/first-start.ts'
export { isSecretName, isSecretText, withoutSecrets } from '../../config/hidden.ts'
export { configFile, homeFolder } from '../../config/home.ts'
export type { Environment } from '../../config/home.ts'
export { refuse } from '../../config/read.ts'
export { readText } from '../../config/read-text.ts'
export type { Config } from '../../config/types.ts'

export const composition = compose(await declarations())

/** As in `config/`, without their first argument. */
export const readConfig = reading.readConfig.bind(null, composition)
export const changeConfig = writing.changeConfig.bind(null, composition)
export const explain = explaining.explain.bind(null, composition)
export const allKeys = explaining.allKeys.bind(null, composition)
export const placeIn = sections.placeIn.bind(null, composition)
export const putSetting = sections.putSetting.bind(null, composition)
export const namePath = sections.namePath.bind(null, composition)
export const migrateText = sections.migrateText.bind(null, composition)
export const presentEnvironment = (env: Environment): Environment =>
	environment.presentEnvironment(composition, env).env
export const unknownVariables = environment.unknownVariables.bind(null, composition)

/** The key of the installation, from the plugin that declares it. Throws a Fault if there is none, or if it cannot be read. */
export function installationKey(home: string, env: Environment): Promise<KeyObject> {
	for (const declared of composition.plugins.values()) {
		const key = declared.installationKey?.(home, env)
		if (key) return key
	}
	throw new Fault('config_invalid', 'no running plugin provides the key of the installation')
}

async function declarations(): Promise<DeclaredPlugin[]> {
	const declared = await ownParts<SettingsDeclaration>('settings.ts')
	return Array.from(ownFiles('index.ts').keys(), (name) => ({ ...declared.get(name), name }))
}
