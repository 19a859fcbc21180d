/**
 * gateway.yaml as this gateway reads it: `config/` with the settings of the plugins that come with the gateway, and with
 * errors as Faults. Settings are found by their file, `plugins/<name>/settings.ts`.
 */
import type { KeyObject } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { compose } from '../../config/composition.ts'
import type { Environment } from '../../config/home.ts'
import type { DeclaredPlugin } from '../../config/composition.ts'
import type { SettingsDeclaration } from '../../config/declaration.ts'
import * as editing from '../../config/edit.ts'
import * as environment from '../../config/environment.ts'
import * as explaining from '../../config/explain.ts'
import * as starting from '../../config/first-start.ts'
import { ConfigError } from '../../config/problems.ts'
import * as reading from '../../config/read.ts'
import * as sections from '../../config/sections.ts'
import * as writing from '../../config/write.ts'
import { Fault } from '../errors.ts'
import { importOwn } from '../util/own-code.ts'

export { isAppliedAtStart } from '../../config/core-sections.ts'
export { isSecretName, isSecretText, withoutSecrets } from '../../config/hidden.ts'
export { configFile } from '../../config/home.ts'
export type { Environment } from '../../config/home.ts'
export type { Config } from '../../config/types.ts'

const folder = new URL('../../plugins/', import.meta.url)

export const composition = compose(await Promise.all(namesOf(folder).map(declarationOf)))

/** As in `config/`, without their first argument. */
export const readConfig = withFaults(reading.readConfig.bind(null, composition))
export const changeConfig = withFaults(writing.changeConfig.bind(null, composition))
export const prepareHome = withFaults(starting.prepareHome.bind(null, composition))
export const explain = withFaults(explaining.explain.bind(null, composition))
export const allKeys = withFaults(explaining.allKeys.bind(null, composition))
export const placeIn = withFaults(sections.placeIn.bind(null, composition))
export const sectionPath = withFaults(sections.sectionPath.bind(null, composition))
export const migrateText = withFaults(sections.migrateText.bind(null, composition))
export const presentEnvironment = (env: Environment): Environment =>
	environment.presentEnvironment(composition, env).env
export const readText = withFaults(reading.readText)
export const pathOf = withFaults(explaining.pathOf)
export const setSetting = withFaults(editing.setSetting)
export const unsetSetting = withFaults(editing.unsetSetting)

/** The error for problems found after `readConfig`. */
export function refuse(...args: Parameters<typeof reading.refuse>): Fault {
	return faultOf(reading.refuse(...args))
}

/** As plugins declare it. Throws a Fault if there is none, or it cannot be read. */
export function installationKey(home: string, env: Environment): Promise<KeyObject> {
	for (const declared of composition.plugins.values()) {
		const key = declared.installationKey?.(home, env)
		if (key) return key
	}
	throw new Fault('config_invalid', 'no running plugin provides the key of the installation')
}

function namesOf(folder: URL): string[] {
	return readdirSync(folder)
		.filter((name) => existsSync(new URL(`${name}/index.ts`, folder)))
		.toSorted()
}

async function declarationOf(name: string): Promise<DeclaredPlugin> {
	const file = new URL(`${name}/settings.ts`, folder)
	if (!existsSync(file)) return { name, file: null }
	const { default: declaration } = (await importOwn(file)) as { default: SettingsDeclaration }
	return { ...declaration, name, file }
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
