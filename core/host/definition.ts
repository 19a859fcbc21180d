/** Turns a plugin's code and settings into what can be started. Pure. */
import { createHash } from 'node:crypto'
import Joi from 'joi'
import type { ValidationErrorItem } from 'joi'
import type { SettingsDeclaration } from '../../config/declaration.ts'
import { messages } from '../../config/messages.ts'
import { suggest } from '../../config/suggest.ts'
import type { Definition } from './instance.ts'
import { BUILT_IN } from './loader.ts'
import type { Loaded } from './loader.ts'
import type { PlanItem } from './plan.ts'
import type { Plugin } from '../plugin.ts'

/** A mistake in the settings of a plugin. */
export interface SettingProblem {
	plugin: string
	/** The path of the setting in gateway.yaml, such as `plugins.clock.zone`. */
	path: string
	message: string
	/** Where to point: at the setting's name or its value. */
	part: 'key' | 'value'
}

/**
 * `at`: where the settings stand in gateway.yaml, which has checked those of built-in plugins. Throws what the plugin's own
 * schema throws.
 */
export function define(
	{ settings, at }: { settings: Record<string, unknown>; at: string },
	{ plugin, declaration, code, source }: Loaded,
): Definition | SettingProblem[] {
	const { problems, config } =
		source === BUILT_IN
			? { problems: [], config: deepFreeze(settings) }
			: checkSettings(plugin, declaration, settings, at)
	if (problems.length > 0) return problems
	const identity = JSON.stringify([plugin.name, code, source, canonical(config)])
	return { plugin, config, source, fingerprint: createHash('sha256').update(identity).digest('hex') }
}

export function planItem({ plugin, fingerprint }: Definition): PlanItem {
	return { name: plugin.name, fingerprint, needs: plugin.needs ?? [] }
}

/** Leaves out plugins that need, directly or indirectly, one that is not in the list; `orphans` gives the reason for each. */
export function withoutOrphans(definitions: readonly Definition[]): {
	fitting: Definition[]
	orphans: Map<string, string>
} {
	const orphans = new Map<string, string>()
	let fitting = [...definitions]
	for (;;) {
		const names = new Set(fitting.map(({ plugin }) => plugin.name))
		const rest = fitting.filter(({ plugin: { name, needs = [] } }) => {
			const missing = needs.find((need) => !names.has(need))
			if (missing !== undefined) orphans.set(name, needsFailed(name, missing))
			return missing === undefined
		})
		if (rest.length === fitting.length) return { fitting, orphans }
		fitting = rest
	}
}

/** Why a plugin is left out because one that it needs is left out. */
export function needsFailed(name: string, need: string): string {
	return `plugin "${name}" needs plugin "${need}", which failed`
}

/** Third-party plugins may accept fractions and unnamed patterns; joi's own messages for those repeat the value. */
const ownMessages = {
	...messages,
	'number.base': 'must be a number',
	'string.pattern.base': 'does not have the required form',
}

function checkSettings(
	plugin: Plugin,
	declaration: SettingsDeclaration | undefined,
	settings: Record<string, unknown>,
	at: string,
): { config?: unknown; problems: SettingProblem[] } {
	const { name } = plugin
	const schemaFor = declaration?.schema?.bind(declaration) ?? plugin.config?.bind(plugin)
	if (!schemaFor && Object.keys(settings).length > 0) {
		const message = `the plugin takes no settings, since it has no settings.ts and no config(joi); write ${name}: true`
		return { problems: [{ plugin: name, path: `${at}.${Object.keys(settings)[0]}`, message, part: 'key' }] }
	}
	const schema = schemaFor?.(Joi) ?? Joi.object({})
	const { value, error } = schema.validate(settings, {
		abortEarly: false,
		errors: { wrap: { label: false, array: false } },
		messages: ownMessages,
	})
	const problems = (error?.details ?? []).map((detail) => ({
		plugin: name,
		path: [at, ...detail.path].join('.'),
		message: withHint(detail, schema),
		part: detail.type === 'object.unknown' ? ('key' as const) : ('value' as const),
	}))
	if (problems.length > 0) return { problems }
	const mistakes = (declaration?.check?.(value) ?? []).map(({ path, message, pointAt = path }) => ({
		plugin: name,
		path: `${at}.${pointAt}`,
		message,
		part: 'value' as const,
	}))
	return { config: deepFreeze(value), problems: mistakes }
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
	const known = Object.keys(section?.keys ?? {})
	const meant = suggest(String(path.at(-1)), known)
	const hint = meant ? `. did you mean "${meant}"?` : known.length > 0 ? `; there are ${known.join(', ')}` : ''
	return message + hint
}

/** The same text for the same settings, whatever the order of their keys. */
function canonical(value: unknown): unknown {
	if (Array.isArray(value)) return value.map(canonical)
	if (typeof value !== 'object' || value === null) return value
	return Object.fromEntries(
		Object.entries(value)
			.toSorted(([a], [b]) => (a < b ? -1 : 1))
			.map(([key, inner]) => [key, canonical(inner)]),
	)
}

function deepFreeze<T>(value: T): T {
	if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
		for (const inner of Object.values(value)) deepFreeze(inner)
		Object.freeze(value)
	}
	return value
}
