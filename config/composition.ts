/** Composes the schema of gateway.yaml from the gateway's own sections and those that plugins declare. */
import joi from 'joi'
import type { ObjectSchema, Schema } from 'joi'
import { coreExamples, coreRenamed, coreRenamedVariables, coreSections } from './core-sections.ts'
import { topics } from './declaration.ts'
import type { SettingsDeclaration, Topic } from './declaration.ts'
import { section } from './fields.ts'
import { messages } from './messages.ts'
import type { Config } from './types.ts'

export interface DeclaredPlugin extends SettingsDeclaration {
	name: string
}

export interface Composition {
	/** Strict: refuses unknown keys, converts nothing, and reports all problems at once. */
	schema: ObjectSchema<Config>
	/** The plugins that come with the gateway, by name. */
	plugins: ReadonlyMap<string, DeclaredPlugin>
	/** The top-level names, under their headings. */
	topics: ReadonlyMap<Topic, readonly string[]>
	/** Texts for the example, by top-level name. */
	examples: Readonly<Record<string, string>>
	/** Former path of a setting → its present path. */
	renamed: ReadonlyMap<string, string>
	/** Former name of an environment variable → its present name. */
	renamedVariables: ReadonlyMap<string, string>
}

/** Joins the sections of the gateway and of the plugins. Throws for a setting whose section does not exist. */
export function compose(declared: readonly DeclaredPlugin[]): Composition {
	const parts = new Map<string, { schema: Schema; topic: Topic }>(Object.entries(coreSections))
	for (const { name, schema, description = '', at, topic = 'Operation' } of declared) {
		const own = schema?.(joi)
		if (!own) continue
		if (!at) parts.set(name, { topic, schema: own.empty(null).default().description(description) })
		for (const [setting, path] of Object.entries(at ?? {})) {
			const [key = '', inner] = path.split('.')
			const part = parts.get(key)
			if (inner === undefined) parts.set(key, { topic, schema: own.extract(setting) })
			else if (part) part.schema = (part.schema as ObjectSchema).keys({ [inner]: own.extract(setting) })
			else if (key === name) parts.set(key, { topic, schema: section(description, { [inner]: own.extract(setting) }) })
			else throw new Error(`${name}: there is no section ${key} for ${path}`)
		}
	}
	const byTopic = new Map(
		topics.map((topic) => [topic, [...parts.keys()].filter((key) => parts.get(key)?.topic === topic)]),
	)
	const keys = [...byTopic.values()].flat()
	return {
		schema: joi.object<Config>(Object.fromEntries(keys.map((key) => [key, parts.get(key)?.schema]))).prefs({
			convert: false,
			abortEarly: false,
			messages,
			errors: { wrap: { array: false, label: false } },
		}),
		plugins: new Map(declared.map((one) => [one.name, one])),
		topics: byTopic,
		examples: Object.assign({}, coreExamples, ...declared.map(({ examples }) => examples)) as Record<string, string>,
		renamed: new Map([
			...Object.entries(coreRenamed),
			...declared.flatMap((one) =>
				Object.entries(one.renamed ?? {}).map(([from, setting]) => [from, pathIn(one, setting)] as const),
			),
		]),
		renamedVariables: new Map([
			...Object.entries(coreRenamedVariables),
			...declared.flatMap(({ renamedVariables = {} }) => Object.entries(renamedVariables)),
		]),
	}
}

/** Whether the plugin has a section with its own name. */
export function hasSection(plugin: DeclaredPlugin | undefined): boolean {
	return plugin?.schema !== undefined && plugin.at === undefined
}

/** The path in gateway.yaml of a plugin's setting: `limits.steps` of `runs` is `runs.limits.steps`. */
export function pathIn({ name, at }: DeclaredPlugin, setting: string): string {
	const [first = '', ...rest] = setting.split('.')
	return at ? [at[first] ?? first, ...rest].join('.') : `${name}.${setting}`
}

/** The settings that a built-in plugin gets: its own, and those of the gateway that it reads. */
export function settingsOf(config: object, { name, schema, at, reads = {} }: DeclaredPlugin): Record<string, unknown> {
	const places = { ...at, ...reads }
	const own = schema && !at ? (valueAt(config, name) as Record<string, unknown> | undefined) : {}
	return { ...own, ...Object.fromEntries(Object.entries(places).map(([key, path]) => [key, valueAt(config, path)])) }
}

/** `path`: dotted, or its parts. */
export function valueAt(settings: unknown, path: string | readonly string[]): unknown {
	return (typeof path === 'string' ? path.split('.') : path).reduce<unknown>(
		(at, name) =>
			typeof at === 'object' && at !== null && Object.hasOwn(at, name)
				? (at as Record<string, unknown>)[name]
				: undefined,
		settings,
	)
}
