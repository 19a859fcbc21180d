/**
 * Loads and checks the wanted plugins. The gateway's start, its reloads and `svc config validate` all call this, so they
 * cannot disagree.
 */
import { hash } from 'node:crypto'
import Joi from 'joi'
import type { ValidationErrorItem } from 'joi'
import { messages } from '../../config/messages.ts'
import type { LateProblem } from '../../config/read.ts'
import { hintFor } from '../../config/suggest.ts'
import { messageOf, pluginInvalid } from '../errors.ts'
import { canonicalJson } from '../util/canonical-json.ts'
import { freeze } from '../util/freeze.ts'
import { isBuiltIn } from '../util/own-files.ts'
import type { WantedPlugin } from './desired-state.ts'
import { BUILT_IN } from './loader.ts'
import type { Loaded, Loader } from './loader.ts'
import { inOrder } from './plan.ts'
import type { Definition } from './plan.ts'

/**
 * Returns the definitions of the plugins whose code loads and whose settings and needs are valid. `problems`: mistakes in
 * gateway.yaml, by plugin, in the order of `plugins`. `broken`: third-party plugins whose code cannot be used, with the error.
 * Throws if the code of a built-in plugin does not load.
 */
export async function definitionsOf(plugins: readonly WantedPlugin[], loader: Loader) {
	const definitions: Definition[] = []
	const problems = new Map<string, LateProblem[]>()
	const broken = new Map<string, unknown>()
	for (const wanted of plugins) {
		const { name, builtIn, path } = wanted
		try {
			const defined = define(wanted, await loader.load(name, builtIn, path))
			const mistakes = Array.isArray(defined) ? defined : unmetNeeds(defined, plugins)
			if (mistakes.length > 0) problems.set(name, mistakes)
			else definitions.push(defined as Definition)
		} catch (error) {
			if (builtIn) throw error
			broken.set(name, error)
		}
	}
	for (const [name, cycle] of inOrder(definitions).cycles) broken.set(name, pluginInvalid(cycle))
	return { definitions: definitions.filter(({ plugin }) => !broken.has(plugin.name)), problems, broken }
}

/**
 * The definition, or the mistakes in its settings. Settings of built-in plugins are checked already. Throws `plugin_invalid` if the
 * plugin's schema cannot be used.
 */
export function define(wanted: WantedPlugin, loaded: Loaded): Definition | LateProblem[] {
	const { plugin, code, source, trouble } = loaded
	const { config, problems = [] } = source === BUILT_IN ? { config: wanted.settings } : checkSettings(wanted, loaded)
	if (problems.length > 0) return problems
	const identity = canonicalJson([plugin.name, code, source, config])
	return {
		plugin,
		config: freeze(config),
		source,
		...(trouble !== undefined && { trouble }),
		fingerprint: hash('sha256', identity),
	}
}

/** Third-party plugins may accept fractions and unnamed patterns; joi's own messages for those repeat the value. */
const ownMessages = {
	...messages,
	'number.base': 'must be a number',
	'string.pattern.base': 'does not have the required form',
}

/** Types of schemas that accept no map. With one, any settings would be reported as a mistake in gateway.yaml. */
const noMaps: ReadonlySet<string> = new Set(['array', 'binary', 'boolean', 'date', 'number', 'string', 'symbol'])

function checkSettings(
	{ settings, at, name }: WantedPlugin,
	{ plugin, declaration }: Loaded,
): { config?: unknown; problems?: LateProblem[] } {
	const schemaFor = declaration?.schema?.bind(declaration) ?? plugin.config?.bind(plugin)
	const [first] = Object.keys(settings)
	if (!schemaFor && first !== undefined) {
		const message = `the plugin takes no settings, since it has no settings.ts and no config(joi); write ${name}: true`
		return { problems: [{ path: `${at}.${first}`, message, part: 'key' }] }
	}
	const { schema, value, error } = validated(settings, () => schemaFor?.(Joi) ?? Joi.object({}), name)
	if (error) {
		const problemOf = (detail: ValidationErrorItem): LateProblem => ({
			path: [at, ...detail.path].join('.'),
			message: withHint(detail, schema),
			part: detail.type === 'object.unknown' ? 'key' : 'value',
		})
		return { problems: error.details.map(problemOf) }
	}
	const mistakes = declaration?.check?.(value) ?? []
	return {
		config: value,
		problems: mistakes.map(({ path, message, pointAt = path }) => ({ path: `${at}.${pointAt}`, message })),
	}
}

function validated(settings: unknown, makeSchema: () => Joi.ObjectSchema, name: string) {
	try {
		const schema = makeSchema()
		if (typeof schema?.validate !== 'function') throw new Error('it is not a schema of joi')
		const type = schema.type ?? ''
		if (noMaps.has(type)) throw new Error(`it is a schema of type ${type}; return joi.object({…})`)
		const options = {
			abortEarly: false,
			errors: { wrap: { label: false, array: false } },
			messages: ownMessages,
		} as const
		return { schema, ...schema.validate(settings, options) }
	} catch (error) {
		const message = `plugin "${name}": the schema of its settings cannot be used: ${messageOf(error)}; fix its config(joi) or its settings file`
		throw pluginInvalid(message, error)
	}
}

interface Described {
	keys?: Record<string, Described>
}

/** The message for an unknown setting, with the one that was probably meant. */
function withHint({ type, path, message }: ValidationErrorItem, schema: Joi.ObjectSchema): string {
	if (type !== 'object.unknown') return message
	const section = path
		.slice(0, -1)
		.reduce<Described | undefined>((at, key) => at?.keys?.[String(key)], schema.describe() as Described)
	return message + hintFor(String(path.at(-1)), Object.keys(section?.keys ?? {}))
}

function unmetNeeds({ plugin }: Definition, wanted: readonly WantedPlugin[]): LateProblem[] {
	const { name, needs = [] } = plugin
	return needs
		.filter((need) => !wanted.some((plugin) => plugin.name === need))
		.map((need) => ({
			// A built-in plugin runs unless the file switches it off; a third-party one may be absent from the file.
			path: `plugins.${isBuiltIn(need) ? need : name}`,
			message: `plugin "${name}" needs plugin "${need}", which is not switched on; set plugins.${need} to true, or plugins.${name} to false`,
		}))
}
