/** Reads gateway.yaml and its state, and checks what a changed text would change. */
import { isFault } from '../../core/errors.ts'
import type { Fault } from '../../core/errors.ts'
import { checkConfig } from '../../core/host/check-config.ts'
import { configFile, isAppliedAtStart, readConfig, readText, withoutSecrets } from '../../core/host/config.ts'
import type { Config, Environment } from '../../core/host/config.ts'
import { digestOf, readRuntimeFile } from '../../core/process/runtime-file.ts'
import { isObject } from '../../core/util/is-object.ts'
import type { ConfigVerdict, FileView, SettingChange } from './contract.ts'
import { hideValues } from './hidden-values.ts'

export interface ConfigLocation {
	home: string
	env: Environment
}

/** Throws `config_invalid` if the file cannot be read as text. */
export function viewOf({ home, env }: ConfigLocation): FileView {
	const file = configFile(home)
	const text = readText(file)
	const digest = digestOf(text)
	const { settings } = readRuntimeFile(home) ?? {}
	const isRead = settings?.digest === digest
	const error = isRead ? settings.refused : null
	const found = error === null ? undefined : readOrFault({ home, env, text, mustSay: true })
	const errors = isFault(found) ? (found.errors ?? []) : []
	const state = !isRead ? 'pending' : error === null ? 'in_force' : 'refused'
	return { file, text: hideValues(text), digest, state, error, errors }
}

/** Runs the code of third-party plugins that the text switches on, as the gateway would. */
export async function verdictOn(place: ConfigLocation, text: string): Promise<ConfigVerdict> {
	try {
		const config = readConfig({ ...place, text, mustSay: true })
		const warnings = await checkConfig(config, place)
		return { valid: true, error: null, errors: [], warnings, changes: changesTo(place, config) }
	} catch (error) {
		if (!isFault(error, 'config_invalid')) throw error
		return { valid: false, error: error.message, errors: error.errors ?? [], warnings: [], changes: [] }
	}
}

/** The configuration, or the reason why it is invalid. */
function readOrFault(request: Parameters<typeof readConfig>[0]): Config | Fault {
	try {
		return readConfig(request)
	} catch (error) {
		if (isFault(error, 'config_invalid')) return error
		throw error
	}
}

/** Compared with the current file, or with the defaults if that file is invalid. */
function changesTo(place: ConfigLocation, config: Config): SettingChange[] {
	const current = readOrFault(place)
	const before = leavesOf(isFault(current) ? readConfig({ ...place, text: '# all defaults\n' }) : current)
	const after = leavesOf(config)
	return [...new Set([...before.keys(), ...after.keys()])].toSorted().flatMap((path) => {
		const [old, now] = [before.get(path), after.get(path)]
		if (JSON.stringify(old) === JSON.stringify(now)) return []
		const name = path.slice(path.lastIndexOf('.') + 1)
		return [
			{
				path,
				...(old !== undefined && { before: withoutSecrets(old, name) }),
				...(now !== undefined && { after: withoutSecrets(now, name) }),
				needs_restart: isAppliedAtStart(path.split('.')),
			},
		]
	})
}

/** All settings below the sections, by path. A list is one setting. */
function leavesOf(value: unknown, path = '', found = new Map<string, unknown>()): Map<string, unknown> {
	if (!isObject(value)) return found.set(path, value)
	for (const [key, inner] of Object.entries(value)) leavesOf(inner, path === '' ? key : `${path}.${key}`, found)
	return found
}
