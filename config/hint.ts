import type { ValidationErrorItem } from 'joi'
import type { Composition } from './composition.ts'
import { jsonSchema, ownOf } from './json-schema.ts'
import type { JsonSchema } from './json-schema.ts'
import { messages } from './messages.ts'
import { suggest } from './suggest.ts'

/** joi's message for a wrong setting, with `did you mean "…"?` if there is a similar name. */
export function hint(composition: Composition, { type, message, path, context }: ValidationErrorItem): string {
	const key = String(path.at(-1))
	const { value, valids = [] } = (context ?? {}) as { value?: unknown; valids?: unknown[] }
	if (value === null && (type === 'any.only' || type.endsWith('.base')))
		return 'has no value; give it one or remove the line'
	if (type === 'any.only') {
		const texts = valids.filter((one) => typeof one === 'string')
		const meant = typeof value === 'string' ? suggest(value, texts) : undefined
		return meant ? `${message}; did you mean "${meant}"?` : message
	}
	if (type === 'number.base' && typeof value === 'string' && /^\d+$/.test(value)) return `${message}, without quotes`
	if (type !== 'object.unknown' || message !== messages['object.unknown']) return message
	// YAML treats such a space as a letter of the name.
	if (/^[^\S ]/.test(key))
		return 'begins with a special space character, as in text copied from a web page; use ordinary spaces'
	const schema = jsonSchema(composition)
	const above = path.slice(0, -1)
	const parts = key.split('.')
	const last = parts.pop() ?? key
	if (parts.length > 0 && settingsAt(schema, [...above, ...parts]).includes(last))
		return `${message}; write ${[last, ...parts.toReversed()].map((one) => `"${one}:"`).join(' below ')}`
	const meant = suggest(key, settingsAt(schema, above))
	// The name exists in another alternative of the schema.
	if (meant === key) return 'is not a setting of this kind'
	const found = meant ?? elsewhere(schema, key)
	return found ? `${message}; did you mean "${found}"?` : message
}

/** The names that a section may have. */
function settingsAt(schema: JsonSchema, path: readonly (string | number)[]): string[] {
	const [first, ...rest] = path
	if (schema.anyOf) return schema.anyOf.flatMap((branch) => settingsAt(branch, path))
	if (first === undefined) return Object.keys(schema.properties ?? {})
	const inner = ownOf(schema.properties, first) ?? Object.values(schema.patternProperties ?? {})[0]
	return inner ? settingsAt(inner, rest) : []
}

/** For a setting in the wrong section: the dotted path of a setting with exactly this name. */
function elsewhere(schema: JsonSchema, key: string, prefix = ''): string | undefined {
	for (const [name, inner] of Object.entries(schema.properties ?? {})) {
		if (prefix && name === key) return prefix + name
		const deeper = elsewhere(inner, key, `${prefix}${name}.`)
		if (deeper) return deeper
	}
	return prefix === '' && ownOf(schema.properties, key) ? key : undefined
}
