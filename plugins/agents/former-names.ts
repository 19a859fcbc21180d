/** Accepts keys of an agent's config under their former names. */
import type { Lifecycle, ResponseToolkit } from '@hapi/hapi'
import type { FieldError } from '../../core/errors.ts'
import { isObject } from '../../core/util/is-object.ts'
import { invalidField } from '../shared/invalid-field.ts'

/** Maps former paths to present ones: `{ 'limits.calls': 'limits.steps' }`. The value must have the same meaning under both. */
export type RenamedKeys = Readonly<Record<string, string>>

type ConfigTree = Record<string, unknown>

/** Each entry also needs a migration that renames the key in stored agents. */
export const renamedKeys: RenamedKeys = {}

const renames = new WeakMap<object, FieldError[]>()

/** Warnings about keys that the request contained under a former name. */
export function renamesIn(request: object): readonly FieldError[] {
	return renames.get(request) ?? []
}

/** Renames keys in a request's `config` before its validation. Throws `invalid_request` if it has a key under both names. */
export function formerNames(renamed: RenamedKeys): { method: Lifecycle.Method } {
	return {
		method: (request, h: ResponseToolkit) => {
			const config = childOf(request.payload, 'config')
			if (config) renames.set(request, rename(config, renamed))
			return h.continue
		},
	}
}

function rename(config: ConfigTree, renamed: RenamedKeys): FieldError[] {
	const warnings: FieldError[] = []
	for (const [former, present] of Object.entries(renamed)) {
		const from = placeOf(config, former)
		if (!from || !Object.hasOwn(from.parent, from.key)) continue
		const to = placeOf(config, present, true)
		const path = `config.${former}`
		if (!to || Object.hasOwn(to.parent, to.key)) {
			throw invalidField(path, `${path} is config.${present} now; remove one of the two`)
		}
		to.parent[to.key] = from.parent[from.key]
		delete from.parent[from.key]
		warnings.push({ path, message: `is config.${present} now; use that name` })
	}
	return warnings
}

/** The object that contains the last key of `path`. Undefined if a part of the path is not an object; `add` creates missing objects. */
function placeOf(config: ConfigTree, path: string, add = false): { parent: ConfigTree; key: string } | undefined {
	const keys = path.split('.')
	const key = keys.pop()!
	let parent: ConfigTree | undefined = config
	for (const name of keys) {
		if (add && !Object.hasOwn(parent, name)) parent[name] = {}
		parent = childOf(parent, name)
		if (!parent) return undefined
	}
	return { parent, key }
}

function childOf(value: unknown, key: string): ConfigTree | undefined {
	if (!isObject(value) || !Object.hasOwn(value, key)) return undefined
	const child = value[key]
	return isObject(child) ? child : undefined
}
