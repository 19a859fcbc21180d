/** Reads gateway.yaml and its state, and checks what a changed text would change. */
import { isFault } from '../../core/errors.ts'
import type { FieldError } from '../../core/errors.ts'
import { checkConfig } from '../../core/host/check-config.ts'
import { configFile, isAppliedAtStart, readConfig, readText, withoutSecrets } from '../../core/host/config.ts'
import type { Config, Environment } from '../../core/host/config.ts'
import { digestOf, readRuntimeFile } from '../../core/process/runtime-file.ts'
import { isObject } from '../../core/util/is-object.ts'
import { hideValues } from './hidden-values.ts'

export interface ConfigLocation {
	home: string
	env: Environment
}

/** `pending`: the gateway has not read the current file yet. */
export type FileState = 'in_force' | 'refused' | 'pending'

export interface FileView {
	file: string
	/** With placeholders for secrets. */
	text: string
	/** Of the whole text; a change must state it, so that it does not overwrite another change. */
	digest: string
	state: FileState
	/** Why the file is refused. */
	error: string | null
	errors: FieldError[]
}

/** `before` and `after`: JSON values, absent if the setting is at its default or unknown. Secrets are hidden. */
export interface SettingChange {
	path: string
	before?: unknown
	after?: unknown
	/** It takes effect only at the next start. */
	needs_restart: boolean
}

export interface ConfigVerdict {
	valid: boolean
	/** All problems, one per line, with line and column. */
	error: string | null
	errors: FieldError[]
	/** Valid settings that should be changed nevertheless. */
	warnings: string[]
	/** Empty for an invalid text. */
	changes: SettingChange[]
}

/** Throws `config_invalid` if the file cannot be read as text. */
export function viewOf({ home, env }: ConfigLocation): FileView {
	const file = configFile(home)
	const text = readText(file)
	const digest = digestOf(text)
	const { settings } = readRuntimeFile(home) ?? {}
	const isRead = settings?.digest === digest
	const error = isRead ? settings.refused : null
	const errors = error === null ? [] : (problemsOf({ home, env }, text)?.errors ?? [])
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

function problemsOf(place: ConfigLocation, text: string): { errors?: FieldError[] | undefined } | undefined {
	try {
		readConfig({ ...place, text, mustSay: true })
		return undefined
	} catch (error) {
		if (isFault(error, 'config_invalid')) return error
		throw error
	}
}

/** Compared with the current file, or with the defaults if that file is invalid. */
function changesTo(place: ConfigLocation, config: Config): SettingChange[] {
	const before = leavesOf(currentConfig(place))
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

function currentConfig(place: ConfigLocation): Config {
	try {
		return readConfig(place)
	} catch (error) {
		if (!isFault(error, 'config_invalid')) throw error
		return readConfig({ ...place, text: '# all defaults\n' })
	}
}

/** All settings below the sections, by path. A list is one setting. */
function leavesOf(value: unknown, path = '', found = new Map<string, unknown>()): Map<string, unknown> {
	if (!isObject(value)) return found.set(path, value)
	for (const [key, inner] of Object.entries(value)) leavesOf(inner, path === '' ? key : `${path}.${key}`, found)
	return found
}
