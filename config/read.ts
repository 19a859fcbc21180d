import { readFileSync, statSync } from 'node:fs'
import type { ValidationError } from 'joi'
import { Fault, messageOf } from '../core/errors.ts'
import { applyEnvironment, isSection } from './environment.ts'
import type { Overlay } from './environment.ts'
import { configFile, expandPath } from './home.ts'
import type { Environment } from './home.ts'
import { hint } from './hint.ts'
import { refusal } from './problems.ts'
import type { Problem } from './problems.ts'
import { checkProviders } from './providers.ts'
import { checkRelations } from './relations.ts'
import { referenceReader } from './references.ts'
import { configSchema } from './schema.ts'
import type { Settings } from './schema.ts'
import { parseTree } from './tree.ts'
import type { Tree } from './tree.ts'
import type { Config } from './types.ts'

const maxBytes = 1024 * 1024

/** Where each setting came from, kept apart so that a Config stays plain data. */
const sources = new WeakMap<Config, { file: string; tree: Tree; origins: Overlay['origins'] }>()

export interface ReadRequest {
	home: string
	env: Environment
	/** A missing or empty file is an error: while the gateway runs it is an accident, and the defaults ask for no token. */
	mustSay?: boolean
	/** Another file in place of the home's gateway.yaml. */
	file?: string
	/** Read in place of what the file holds, which need not be there. */
	text?: string
}

/**
 * The configuration of a home folder: gateway.yaml (none is the same as an empty one) with its references replaced, the
 * environment over it, defaults under it; checked and deep-frozen.
 *
 * Throws `config_invalid`. Its message has a line for each problem, `file:line:column: path: what is wrong`, and
 * `errors` the same as data. No message repeats a value, which may be a key.
 */
export function readConfig({
	home,
	env,
	mustSay = false,
	file = configFile(home),
	text = readText(file),
}: ReadRequest): Config {
	if (mustSay && text.trim() === '') {
		const message = 'is missing or empty; write at least a comment for the defaults'
		throw new Fault('config_invalid', `${file}: ${message}`, { errors: [{ path: '', message }] })
	}
	const tree = parseTree(text, referenceReader(env))
	if (tree.value === undefined) throw refusal(file, tree.problems)
	const overlay = applyEnvironment(tree.value, env)
	const { value, error } = validate(overlay.value, tree)
	const problems = [
		...tree.problems,
		...overlay.problems,
		...schemaProblems(error, tree, overlay),
		...checkProviders(overlay.value, (path) => place(path, 'value', tree, overlay)),
	]
	for (const { path, message } of error ? [] : checkRelations(value))
		problems.push({ path, message, where: place(path, 'value', tree, overlay) })
	if (problems.length > 0 || error) throw refusal(file, problems)

	// Several providers without a default have been refused above.
	const { default_provider = Object.keys(value.providers)[0] ?? 'offline' } = value
	const config: Config = deepFreeze({
		...value,
		default_provider,
		store: { ...value.store, path: expandPath(value.store.path, home) },
		backups: { ...value.backups, folder: expandPath(value.backups.folder, home) },
		providers: withoutPrototype(value.providers),
		plugins: withoutPrototype(value.plugins),
	})
	sources.set(config, { file, tree, origins: overlay.origins })
	return config
}

/**
 * `file:line:column` of a setting, or of what encloses it where the file does not have it. For problems that are found
 * later, such as a plugin's own with its settings: `locate(config, 'plugins.clock.zone')`.
 */
export function locate(config: Config, path: string): string {
	const source = sources.get(config)
	if (!source) throw new TypeError('this configuration does not come from readConfig')
	const { line, column } = source.tree.locate(path, 'value')
	return `${source.file}:${line}:${column}`
}

/** Where the value of a setting comes from; `where` is `file:line:column`. */
export type Origin = { from: 'environment'; variable: string } | { from: 'file'; where: string } | { from: 'default' }

/** A section counts as set in the file where anything of it stands there. */
export function originOf(config: Config, path: string): Origin {
	const source = sources.get(config)
	if (!source) throw new TypeError('this configuration does not come from readConfig')
	const variable = source.origins.get(path)
	if (variable !== undefined) return { from: 'environment', variable }
	return source.tree.has(path) ? { from: 'file', where: locate(config, path) } : { from: 'default' }
}

/** Which variables of the environment win over the file, by the setting. */
export function variablesOf(config: Config): Record<string, string> {
	return Object.fromEntries(sources.get(config)?.origins ?? [])
}

/** Of a gateway.yaml; empty where there is none. Throws `config_invalid` where it cannot be read as text. */
export function readText(file: string): string {
	try {
		const found = statSync(file, { throwIfNoEntry: false })
		if (!found) return ''
		if (!found.isFile()) throw new Error('is not a file')
		if (found.size > maxBytes) throw new Error('is larger than 1 MiB')
		return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
	} catch (error) {
		const message = error instanceof TypeError ? 'is not UTF-8 text; save it as UTF-8' : messageOf(error)
		throw new Fault('config_invalid', `${file}: ${message}`, { errors: [{ path: '', message }] })
	}
}

/** A reference is text in YAML; where a number or a truth value is wanted, what it stands for is read as one. */
function validate(value: unknown, tree: Tree): { value: Settings; error: ValidationError | undefined } {
	const first = configSchema.validate(value)
	let changed = false
	for (const { type, path } of first.error?.details ?? []) {
		if (!tree.replaced.has(path.join('.'))) continue
		const wanted = { 'number.base': asNumber, 'boolean.base': asBoolean, 'alternatives.types': asBoolean }[type]
		const parent = path.slice(0, -1).reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], value)
		const key = path.at(-1)
		if (!wanted || key === undefined) continue
		const section = parent as Record<string, unknown>
		section[key] = wanted(String(section[key]))
		changed = true
	}
	const last = changed ? configSchema.validate(value) : first
	return { value: last.value as Settings, error: last.error }
}

function asNumber(text: string): unknown {
	return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

function asBoolean(text: string): unknown {
	return text === 'true' ? true : text === 'false' ? false : text
}

function schemaProblems(error: ValidationError | undefined, tree: Tree, overlay: Overlay): Problem[] {
	// A wrong choice is also of a wrong type: the first problem of a setting says enough.
	const told = new Set(tree.broken)
	return (error?.details ?? []).flatMap((detail) => {
		const path = detail.path.join('.')
		if (told.has(path)) return []
		told.add(path)
		const where = place(path, detail.type === 'object.unknown' ? 'key' : 'value', tree, overlay)
		return [{ path, message: hint(detail), where }]
	})
}

function place(path: string, part: 'key' | 'value', tree: Tree, { origins }: Overlay): Problem['where'] {
	const variable = origins.get(path)
	return variable ? { variable } : tree.locate(path, part)
}

/** A name of the user's is looked up in it: `constructor` must find nothing. */
function withoutPrototype<T>(map: Readonly<Record<string, T>>): Record<string, T> {
	return Object.assign(Object.create(null) as Record<string, T>, map)
}

function deepFreeze<T>(value: T): T {
	if (Array.isArray(value) || isSection(value)) Object.values(value).forEach(deepFreeze)
	return Object.freeze(value)
}
