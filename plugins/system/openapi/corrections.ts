/** Corrects joi's own translation to JSON Schema. */
import { isObject } from '../../../core/util/is-object.ts'
import type { About, JsonSchema } from './json-schema.ts'

/** joi's formats that JSON Schema does not know, as patterns; null if there is no simple one. */
const patterns: Record<string, string | null> = {
	hex: '^[0-9A-Fa-f]*$',
	token: '^[0-9A-Za-z_]*$',
	base64: '^[0-9A-Za-z+/]*={0,2}$',
	ip: null,
	'data-uri': null,
}

/** Corrects errors that may occur at any level, in place. */
export function correct(json: JsonSchema): void {
	if (Array.isArray(json.type)) json.type = json.type.flat(Infinity) as string[]
	// joi allows null by its type alone, and then the enum forbids it again.
	if (json.enum && [json.type].flat().includes('null') && !json.enum.includes(null)) json.enum.push(null)
	// joi marks "as its keys" by a symbol.
	if (typeof json.default === 'symbol') delete json.default
	// Any items, which some readers want to see.
	if ([json.type].flat().includes('array')) json.items ??= {}
	if (json.$ref) json.$ref = json.$ref.replace('#/$defs/', '#/components/schemas/')
	const pattern = patterns[String(json.format)]
	if (pattern !== undefined) delete json.format
	if (pattern) json.pattern ??= pattern
	for (const value of Object.values(json)) {
		for (const inner of Array.isArray(value) ? value : [value]) if (isObject(inner)) correct(inner)
	}
}

/** The patterns of a text as joi means them: it translates a negated pattern like a positive one. */
export function textRules(json: JsonSchema, { rules = [], allow = [] }: About): JsonSchema {
	const found = rules.flatMap(({ name, args }) => (name === 'pattern' && args?.regex ? [args] : []))
	if (found.length > 0) {
		const { pattern: _, allOf: __, ...rest } = json
		const said = found.flatMap(({ regex = '', options }): JsonSchema[] => {
			const [, source = '', flags = ''] = /^\/(.*)\/(\w*)$/su.exec(regex) ?? []
			if (flags.includes('i')) return [] // patterns of JSON Schema cannot ignore case
			return [options?.invert ? { not: { pattern: source } } : { pattern: source }]
		})
		const [only, ...more] = said
		json = more.length > 0 ? { ...rest, allOf: said } : { ...rest, ...only }
	}
	// The rules of a text apply to the empty one as well, unless it is allowed separately.
	const mayBeEmpty = allow.includes('') && !json.enum
	const forbidsEmpty = (json.minLength ?? 0) > 0 || json.pattern !== undefined || json.allOf !== undefined
	if (!mayBeEmpty || !forbidsEmpty) return json
	const { description, ...others } = json
	return { ...(description !== undefined && { description }), anyOf: [{ enum: [''] }, others] }
}
