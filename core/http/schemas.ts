/** Prepares the schemas with which routes validate headers, parameters, queries and bodies. */
import type { RequestRoute, RouteOptionsResponseSchema } from '@hapi/hapi'
import type { Schema, ValidationOptions } from 'joi'
import { byPresentKeys, plainTypes } from './present-keys.ts'

const parts = ['headers', 'params', 'query', 'payload'] as const
const preferences: ValidationOptions = { abortEarly: false, errors: { wrap: { label: false } } }

/** joi's own messages would repeat the value, which may be as long as the body. */
const withoutValues = {
	'string.pattern.base': '{{#label}} fails to match the required pattern: {{#regex}}',
	'string.pattern.name': '{{#label}} fails to match the {{#name}} pattern',
	'string.pattern.invert.base': '{{#label}} matches the inverted pattern: {{#regex}}',
	'string.pattern.invert.name': '{{#label}} matches the inverted {{#name}} pattern',
}

/** By the function that hapi gets instead. */
const schemas = new WeakMap<object, Schema>()

/**
 * If the preferences were options of each validation, joi would merge them and compile the messages for every request. So hapi gets
 * a function instead of each schema, and passes the request to it as joi's context. A route with its own options, or with a
 * validator that is not joi's, is left to hapi; its options take precedence over our preferences.
 */
export function prepareSchemas({ settings: { validate } }: RequestRoute): void {
	if (!validate) return
	const given = parts.map((part): unknown => validate[part])
	const isPrepared =
		Object.keys(validate.options ?? {}).length === 0 &&
		!given.some((one) => typeof one === 'object' && one && !isSchema(one))
	if (!isPrepared) validate.options = { ...preferences, ...validate.options }
	for (const [index, part] of parts.entries()) {
		const one = given[index]
		if (!isPrepared) {
			if (isSchema(one)) validate[part] = one.prefs({ messages: withoutValues })
		} else if (typeof one === 'function') {
			const check = one as Check
			validate[part] = function (this: unknown, value: unknown, options: object) {
				return check.call(this, value, { ...preferences, ...options })
			}
		} else if (isSchema(one)) {
			// At the first request: joi checks and compiles preferences, which would delay the start.
			let prepared: Prepared | undefined
			const check: Prepared = (value, options) => (prepared ??= preparedFrom(one))(value, options)
			schemas.set(check, one)
			validate[part] = check as RouteOptionsResponseSchema // hapi awaits the result, although its types do not state that
		}
	}
}

type Prepared = (value: unknown, options: ValidationOptions) => unknown

function preparedFrom(given: Schema): Prepared {
	const checkFor = byPresentKeys(given, checkBy)
	return (value, options) => checkFor(value)(value, options)
}

/**
 * Validates without options, so that joi merges no preferences, and, if possible, without a promise: both take longer than the
 * validation of a name.
 */
function checkBy(given: Schema, description: object | undefined): Prepared {
	const schema = withPreferences(given)
	if (!needsNoContext(description)) return (value, { context = {} }) => schema.validateAsync(value, { context })
	return (value) => {
		const { value: valid, error } = schema.validate(value) as { value: unknown; error?: Error }
		if (error) throw error
		return valid
	}
}

/** In the template of a message or value: a reference to the context. */
const CONTEXT = /\{[^}]*\$/

/** False without a description, or if it contains an object that contains itself. */
function needsNoContext(description: object | undefined): boolean {
	try {
		return description !== undefined && isPlain(description)
	} catch {
		return false
	}
}

/** Whether a schema, by its description, uses neither the context of the request nor functions, which could. */
function isPlain(part: unknown): boolean {
	if (typeof part === 'function') return false
	if (typeof part === 'string') return !CONTEXT.test(part)
	if (typeof part !== 'object' || part === null) return true
	if (Array.isArray(part)) return part.every(isPlain)
	const { type, ref, template, options } = part as Partial<Record<string, unknown>> & { ref?: { type?: unknown } }
	// A template's options may choose a different sign than `$`.
	if (typeof template === 'string' && options !== undefined) return false
	if (ref?.type === 'global' || (typeof type === 'string' && !plainTypes.has(type))) return false
	return Object.entries(part).every(([name, inner]) => (name === 'examples' && Array.isArray(inner)) || isPlain(inner))
}

/** For a validation without options but the context. */
export function withPreferences(schema: Schema, abortEarly = false): Schema {
	return schema.prefs({ ...preferences, abortEarly, messages: withoutValues })
}

/** The schema that a route declares for a part of its requests; undefined if it declares none, or a function. */
export function schemaOf(
	{ settings: { validate = {} } }: Pick<RequestRoute, 'settings'>,
	part: (typeof parts)[number],
): unknown {
	const check: unknown = validate[part]
	return typeof check === 'function' ? schemas.get(check) : check
}

type Check = (this: unknown, value: unknown, options: object) => Promise<unknown>

/** Not by its class: a plugin may use its own copy of joi. */
export function isSchema(given: unknown): given is Schema {
	return typeof given === 'object' && given !== null && 'validateAsync' in given && 'prefs' in given
}
