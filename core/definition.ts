/** From what the operator wants and what the loader found to what can be started. Pure. */
import { createHash } from 'node:crypto'
import Joi from 'joi'
import { Fault } from './errors.ts'
import type { Definition } from './instance.ts'
import { BUILT_IN } from './loader.ts'
import type { Loaded } from './loader.ts'
import type { PlanItem } from './plan.ts'
import type { Plugin } from './plugin.ts'

/** Where a setting stands in the configuration file, for people; null where it stands nowhere. */
export type Locate = (path: string) => string | null

/** Throws `config_invalid`, naming each wrong setting, where the plugin's own schema does not take its settings. */
export function define(
	settings: Record<string, unknown>,
	{ plugin, code, source }: Loaded,
	locate: Locate,
): Definition {
	const config = checkSettings(plugin, settings, locate)
	const identity = JSON.stringify([plugin.name, code, source, canonical(config)])
	return { plugin, config, source, fingerprint: createHash('sha256').update(identity).digest('hex') }
}

export function planItem({ plugin, fingerprint }: Definition): PlanItem {
	return { name: plugin.name, fingerprint, needs: plugin.needs ?? [] }
}

/** Leaves out those that need, directly or not, one that failed to load or, being a third party's, one that is not there; adds them to `failures` with the reason. */
export function withoutOrphans(definitions: Definition[], failures: Map<string, string>): Definition[] {
	const names = new Set(definitions.map((one) => one.plugin.name))
	const missing = ({ plugin, source }: Definition): string | undefined =>
		plugin.needs?.find((need) => !names.has(need) && (failures.has(need) || source !== BUILT_IN))
	const orphan = definitions.find((one) => missing(one) !== undefined)
	if (!orphan) return definitions
	const need = missing(orphan) ?? ''
	const why = failures.has(need) ? 'which failed' : `which is not switched on; set plugins.${need} to true`
	failures.set(orphan.plugin.name, `plugin "${orphan.plugin.name}" needs plugin "${need}", ${why}`)
	return withoutOrphans(
		definitions.filter((one) => one !== orphan),
		failures,
	)
}

/** joi's own text repeats the value, which may be a key. */
const messages = { 'string.pattern.base': '{#label} does not have the required form' }

function checkSettings(plugin: Plugin, settings: Record<string, unknown>, locate: Locate): unknown {
	if (!plugin.config && Object.keys(settings).length > 0) {
		const path = `plugins.${plugin.name}`
		const message = `the plugin takes no settings, since it has no config(joi); write ${plugin.name}: true`
		throw new Fault('config_invalid', [locate(path), path, message].filter((part) => part !== null).join(': '), {
			errors: [{ path, message }],
		})
	}
	const schema = plugin.config ? plugin.config(Joi) : Joi.object({})
	const { value, error } = schema.validate(settings, {
		abortEarly: false,
		errors: { wrap: { label: false } },
		messages,
	})
	if (!error) return deepFreeze(value)
	const errors = error.details.map((detail) => ({
		path: ['plugins', plugin.name, ...detail.path].join('.'),
		message: detail.message,
	}))
	const lines = errors.map(({ path, message }) =>
		[locate(path), path, message].filter((part) => part !== null).join(': '),
	)
	throw new Fault('config_invalid', lines.join('\n'), { errors })
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
