/**
 * Binds `config/` to this gateway: to the settings of the built-in plugins, which are found in `plugins/<name>/settings.ts`,
 * and with errors as Faults.
 */
import type { KeyObject } from 'node:crypto'
import { compose } from '../../config/composition.ts'
import type { Environment } from '../../config/home.ts'
import type { DeclaredPlugin } from '../../config/composition.ts'
import type { SettingsDeclaration } from '../../config/declaration.ts'
import * as editing from '../../config/edit.ts'
import * as environment from '../../config/environment.ts'
import * as explaining from '../../config/explain.ts'
import * as starting from '../../config/first-start.ts'
import * as homes from '../../config/home.ts'
import { ConfigError } from '../../config/problems.ts'
import * as reading from '../../config/read.ts'
import * as texts from '../../config/read-text.ts'
import * as sections from '../../config/sections.ts'
import * as writing from '../../config/write.ts'
import { Fault } from '../errors.ts'
import { ownFiles, ownParts } from '../util/own-files.ts'

export { isAppliedAtStart } from '../../config/core-sections.ts'
export { isSecretName, isSecretText, withoutSecrets } from '../../config/hidden.ts'
export { configFile } from '../../config/home.ts'
export type { Environment } from '../../config/home.ts'
export type { Config } from '../../config/types.ts'

export const composition = compose(await declarations())

/** As in `config/`, without their first argument. */
export const readConfig = withFaults(reading.readConfig.bind(null, composition))
export const changeConfig = withFaults(writing.changeConfig.bind(null, composition))
export const explain = withFaults(explaining.explain.bind(null, composition))
export const allKeys = withFaults(explaining.allKeys.bind(null, composition))
export const placeIn = withFaults(sections.placeIn.bind(null, composition))
export const putSetting = withFaults(sections.putSetting.bind(null, composition))
export const namePath = withFaults(sections.namePath.bind(null, composition))
export const migrateText = withFaults(sections.migrateText.bind(null, composition))
export const presentEnvironment = (env: Environment): Environment =>
	environment.presentEnvironment(composition, env).env
export const unknownVariables = environment.unknownVariables.bind(null, composition)
export const homeFolder = withFaults(homes.homeFolder)
export const prepareHome = withFaults(starting.prepareHome)
export const readText = withFaults(texts.readText)
export const pathOf = withFaults(explaining.pathOf)
export const settingAt = withFaults(editing.settingAt)
export const setSetting = withFaults(editing.setSetting)
export const unsetSetting = withFaults(editing.unsetSetting)

/** The error for problems found after `readConfig`. */
export function refuse(...args: Parameters<typeof reading.refuse>): Fault {
	return faultOf(reading.refuse(...args))
}

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

function withFaults<Args extends unknown[], Result>(work: (...args: Args) => Result): (...args: Args) => Result {
	const rethrow = (error: unknown): never => {
		throw error instanceof ConfigError ? faultOf(error) : error
	}
	return (...args) => {
		try {
			const result = work(...args)
			return result instanceof Promise ? (result.catch(rethrow) as Result) : result
		} catch (error) {
			return rethrow(error)
		}
	}
}

function faultOf({ code, message, errors, cause }: ConfigError): Fault {
	return new Fault(code, message, { ...(errors && { errors }), cause })
}
