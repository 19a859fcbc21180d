import { existsSync } from 'node:fs'
import type { ValidationError } from 'joi'
import type { Fault } from '../core/errors.ts'
import { isObject } from '../core/util/is-object.ts'
import { pathIn, settingsOf, valueAt } from './composition.ts'
import type { Composition, DeclaredPlugin } from './composition.ts'
import { coreMistakes } from './core-sections.ts'
import { applyEnvironment, presentEnvironment, withValue } from './environment.ts'
import type { Overlay } from './environment.ts'
import { configFile, expandPath } from './home.ts'
import type { Environment } from './home.ts'
import { hint } from './hint.ts'
import { placeholderWarnings } from './placeholders.ts'
import { inOrder, refusal } from './problems.ts'
import type { Problem } from './problems.ts'
import { readText } from './read-text.ts'
import { referenceReader } from './references.ts'
import { gatherSections } from './sections.ts'
import type { Sections } from './sections.ts'
import { parseTree } from './tree.ts'
import type { Config } from './types.ts'

/** The source of each Config, stored separately so that a Config is plain data. */
const sources = new WeakMap<Config, ConfigSource>()

interface ConfigSource {
	file: string
	tree: Sections
	origins: Overlay['origins']
	warnings: Problem[]
}

export interface ReadRequest {
	home: string
	env: Environment
	/**
	 * A missing file is an error, as an empty one always is: it is probably an accident, and the defaults may allow more than the
	 * operator wants.
	 */
	mustSay?: boolean
	/** Replaces the home's gateway.yaml. */
	file?: string
	/** Replaces the content of the file, which need not exist. */
	text?: string
}

/**
 * The configuration of a home folder: gateway.yaml, which may be missing, with its references replaced, overridden by the
 * environment and completed with defaults. It is checked and deep-frozen.
 *
 * Throws `config_invalid`. Its message has a line for each problem, `file:line:column: path: what is wrong`, and
 * `errors` the same as data. No message repeats a value, which may be a key.
 */
export function readConfig(
	composition: Composition,
	{ home, env: given, mustSay = false, file = configFile(home), text: givenText }: ReadRequest,
): Config {
	const { env, warnings } = presentEnvironment(composition, given)
	const text = givenText ?? readText(file)
	const isMissing = !existsSync(file)
	if (text.trim() === '' && (mustSay || !isMissing)) {
		const message = `is ${isMissing ? 'missing' : 'empty'}; write at least a comment for the defaults`
		throw refusal(file, [{ path: '', message, where: { line: 1, column: 1 } }])
	}
	const parsed = parseTree(text, referenceReader(env))
	if (parsed.value === undefined) throw refusal(file, parsed.problems)
	const tree = gatherSections(composition, parsed)
	const overlay = applyEnvironment(composition, tree.value, env)
	const { value, error } = validate(composition, overlay.value, tree)
	const problems = [
		...tree.problems,
		...overlay.problems,
		...schemaProblems(composition, error, tree, overlay),
		...mistakesIn(composition, value, error).map(({ path, message, pointAt = path }) => ({
			path: tree.written(path),
			message,
			where: place(pointAt, 'value', tree, overlay),
		})),
	]
	if (problems.length > 0 || error) throw refusal(file, problems)

	const config = deepFreeze(withAbsolutePaths(composition, value, home))
	sources.set(config, {
		file,
		tree,
		origins: overlay.origins,
		warnings: [...warnings, ...tree.warnings, ...placeholderWarnings(tree)],
	})
	return config
}

/** A problem found after `readConfig`, such as one that a plugin has with its own settings. */
export interface LateProblem {
	/** The path of the setting: `plugins.clock.zone`. */
	path: string
	message: string
	/** Whether to report the position of the name or of the value. Default: the value. */
	part?: 'key' | 'value'
}

/** The error that `readConfig` would have thrown for these problems. `config`: a result of `readConfig`. */
export function refuse(
	config: Config,
	problems: readonly LateProblem[],
	code?: 'config_invalid' | 'unavailable',
): Fault {
	const { file, tree, origins } = sourceOf(config)
	const placed = problems.map(({ path, message, part = 'value' }) => ({
		path: tree.written(path),
		message,
		where: place(path, part, tree, { origins }),
	}))
	return refusal(file, placed, code)
}

/** One problem as a line, for warnings. */
export function warn(config: Config, problem: LateProblem): string {
	return refuse(config, [problem]).message
}

/** What the operator should change although the file is valid: former names of settings and variables, and placeholders; one line each. */
export function warningsOf(config: Config): string[] {
	const { file, warnings } = sourceOf(config)
	return inOrder(warnings).map((problem) => refusal(file, [problem]).message)
}

function sourceOf(config: Config): ConfigSource {
	const source = sources.get(config)
	if (!source) throw new TypeError('this configuration does not come from readConfig')
	return source
}

/** The source of a setting's value; `where` is `file:line:column`. */
export type ValueOrigin =
	| { from: 'environment'; variable: string }
	| { from: 'file'; where: string }
	| { from: 'default' }

/** A section counts as set in the file if the file has any part of it. */
export function originOf(config: Config, path: string): ValueOrigin {
	const { file, origins, tree } = sourceOf(config)
	const variable = origins.get(path)
	if (variable !== undefined) return { from: 'environment', variable }
	if (!tree.has(path)) return { from: 'default' }
	const { line, column } = tree.locate(path, 'value')
	return { from: 'file', where: `${file}:${line}:${column}` }
}

/** The variables of the environment that override the file, by setting. */
export function variablesOf(config: Config): Record<string, string> {
	return Object.fromEntries(sourceOf(config).origins)
}

/** A reference is text in YAML. If the schema expects a number or a boolean, its value is converted. */
function validate(
	{ schema }: Composition,
	value: unknown,
	tree: Sections,
): { value: Config; error: ValidationError | undefined } {
	const first = schema.validate(value)
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
	const last = changed ? schema.validate(value) : first
	return { value: last.value as Config, error: last.error }
}

function asNumber(text: string): unknown {
	return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text
}

function asBoolean(text: string): unknown {
	return text === 'true' ? true : text === 'false' ? false : text
}

function schemaProblems(
	composition: Composition,
	error: ValidationError | undefined,
	tree: Sections,
	overlay: Overlay,
): Problem[] {
	// Only the first problem of a setting: a wrong choice also has a wrong type.
	const reported = new Set(tree.broken)
	return (error?.details ?? []).flatMap((detail) => {
		const path = detail.path.join('.')
		if (reported.has(path)) return []
		reported.add(path)
		const where = place(path, detail.type === 'object.unknown' ? 'key' : 'value', tree, overlay)
		return [{ path: tree.written(path), message: hint(composition, detail), where }]
	})
}

/** Valid settings that contradict each other. Skips the `check` of plugins whose settings the schema refuses. */
function mistakesIn(
	{ plugins }: Composition,
	value: Config,
	error: ValidationError | undefined,
): { path: string; message: string; pointAt?: string }[] {
	const refused = (error?.details ?? []).map(({ path }) => path.join('.'))
	const isRefused = (plugin: DeclaredPlugin): boolean =>
		Object.values(plugin.at ?? { section: plugin.name }).some((place) =>
			refused.some((path) => `${path}.`.startsWith(`${place}.`) || place.startsWith(`${path}.`)),
		)
	const ofPlugins = [...plugins.values()].flatMap((plugin) => {
		if (!plugin.check || refused.includes('') || isRefused(plugin)) return []
		return plugin.check(settingsOf(value, plugin)).map(({ path, message, pointAt = path }) => ({
			path: pathIn(plugin, path),
			message,
			pointAt: pathIn(plugin, pointAt),
		}))
	})
	return error ? ofPlugins : [...coreMistakes(value), ...ofPlugins]
}

function withAbsolutePaths({ plugins }: Composition, value: Config, home: string): Config {
	const ofPlugins = [...plugins.values()].flatMap((plugin) => (plugin.paths ?? []).map((path) => pathIn(plugin, path)))
	return ['store.path', ...ofPlugins].reduce((config, setting) => {
		const path = valueAt(config, setting)
		if (typeof path !== 'string') return config
		return withValue(config as never, setting.split('.'), expandPath(path, home)) as unknown as Config
	}, value)
}

function place(
	path: string,
	part: 'key' | 'value',
	tree: Sections,
	{ origins }: Pick<Overlay, 'origins'>,
): Problem['where'] {
	const variable = origins.get(path)
	return variable ? { variable } : tree.locate(path, part)
}

/** Freezes a copy without prototypes: names from users are looked up in it, and `constructor` must not be found. */
function deepFreeze<T>(value: T): T {
	if (Array.isArray(value)) return Object.freeze(value.map(deepFreeze)) as T
	if (!isObject(value)) return value
	const entries = Object.entries(value).map(([key, inner]) => [key, deepFreeze(inner)])
	return Object.freeze(Object.assign(Object.create(null) as object, Object.fromEntries(entries))) as T
}
