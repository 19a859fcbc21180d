import type { Dependency, JsonSchema } from './json-schema.ts'

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
