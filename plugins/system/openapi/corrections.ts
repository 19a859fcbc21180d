/** Corrects joi's translation to JSON Schema, and adds the rules that it lacks. */
import { isObject } from '../../../core/util/is-object.ts'
import type { About, Dependency, JsonSchema } from './json-schema.ts'

/** Patterns for joi's formats that JSON Schema does not have; null if there is no simple pattern. */
const patterns: Record<string, string | null> = {
	hex: '^[0-9A-Fa-f]*$',
	token: '^[0-9A-Za-z_]*$',
	base64: '^[0-9A-Za-z+/]*={0,2}$',
	ip: null,
	'data-uri': null,
}

/** Corrects errors at all levels, in place. */
export function correct(json: JsonSchema): void {
	if (Array.isArray(json.type)) json.type = json.type.flat(Infinity) as string[]
	// joi adds null to the type, but not to the enum, which then forbids it.
	if (json.enum && [json.type].flat().includes('null') && !json.enum.includes(null)) json.enum.push(null)
	// With a symbol, joi means the defaults of the keys.
	if (typeof json.default === 'symbol') delete json.default
	// Some tools require `items`; an empty schema allows any.
	if ([json.type].flat().includes('array')) json.items ??= {}
	if (json.$ref) json.$ref = json.$ref.replace('#/$defs/', '#/components/schemas/')
	const pattern = patterns[String(json.format)]
	if (pattern !== undefined) delete json.format
	if (pattern) json.pattern ??= pattern
	for (const value of Object.values(json)) {
		for (const inner of Array.isArray(value) ? value : [value]) if (isObject(inner)) correct(inner)
	}
}

/** Corrects the patterns of a text: joi translates an inverted pattern like a normal one. */
export function textRules(json: JsonSchema, { rules = [], allow = [] }: About): JsonSchema {
	const found = rules.flatMap(({ name, args }) => (name === 'pattern' && args?.regex ? [args] : []))
	if (found.length > 0) {
		const { pattern: _, allOf: __, ...rest } = json
		const patternRules = found.flatMap(({ regex = '', options }): JsonSchema[] => {
			const [, source = '', flags = ''] = /^\/(.*)\/(\w*)$/su.exec(regex) ?? []
			if (flags.includes('i')) return [] // JSON Schema has no case-insensitive patterns
			return [options?.invert ? { not: { pattern: source } } : { pattern: source }]
		})
		const [only, ...others] = patternRules
		json = others.length > 0 ? { ...rest, allOf: patternRules } : { ...rest, ...only }
	}
	// In joi, an allowed empty text is exempt from the other rules.
	const mayBeEmpty = allow.includes('') && !json.enum
	const forbidsEmpty = (json.minLength ?? 0) > 0 || json.pattern !== undefined || json.allOf !== undefined
	if (!mayBeEmpty || !forbidsEmpty) return json
	const { description, ...others } = json
	return { ...(description !== undefined && { description }), anyOf: [{ enum: [''] }, others] }
}

/** Converts joi's rules between the keys of one object, such as `or` and `xor`, to JSON Schema. */
export function rulesOf(dependencies: Dependency[], orNull: boolean): JsonSchema[] {
	const rules = dependencies.flatMap(ruleOf)
	// `required` does not apply to null, which is allowed in place of the object.
	return orNull ? rules.map((rule) => ({ anyOf: [{ type: 'null' }, rule] })) : rules
}

/** Returns nothing for rules about nested keys, which JSON Schema cannot express. */
function ruleOf({ rel, key, peers }: Dependency): JsonSchema[] {
	const names = peers.filter((peer): peer is string => typeof peer === 'string' && !peer.includes('.'))
	if (names.length !== peers.length) return []
	const present = names.map((name): JsonSchema => ({ required: [name] }))
	switch (rel) {
		case 'or':
			return [{ anyOf: present }]
		case 'xor':
			return [{ oneOf: present }]
		case 'oxor':
			return [{ oneOf: [...present, { not: { anyOf: present } }] }]
		case 'nand':
			return [{ not: { required: names } }]
		case 'and':
			return [
				{ dependentRequired: Object.fromEntries(names.map((name) => [name, names.filter((other) => other !== name)])) },
			]
		case 'with':
			return key === undefined ? [] : [{ dependentRequired: { [key]: names } }]
		case 'without':
			return key === undefined ? [] : names.map((name) => ({ not: { required: [key, name] } }))
		default:
			return []
	}
}
