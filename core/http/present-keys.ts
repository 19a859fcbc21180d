/**
 * Validates a value with a schema that has only the keys of the value. An absent key costs joi as much time as a short text, and
 * a body that may have forty keys usually has three.
 */
import type { ObjectSchema, Schema } from 'joi'

/** The types of joi itself. A type that a plugin adds to joi may do anything. */
export const plainTypes: ReadonlySet<unknown> = new Set(
	'alternatives any array binary boolean date link number object string symbol'.split(' '),
)

/** With fewer optional keys, a smaller schema saves nothing. */
const LEAST_OPTIONAL = 8
/** Only the first sets of keys get their own schema: making one takes as long as many validations. */
const SETS = 16

/**
 * Returns a function that returns the check for a value. The check uses a smaller schema, which accepts the same and reports the
 * same mistakes for this value, or the whole one. `make` makes the check for a schema and joi's description of it; undefined if it
 * cannot be described, for example because a plugin attached an object that contains itself.
 */
export function byPresentKeys<Check>(
	schema: Schema,
	make: (schema: Schema, description: object | undefined) => Check,
): (value: unknown) => Check {
	// Once: joi validates each part of a description, which takes longer than the validation of many values.
	const description = describe(schema)
	const whole = make(schema, description)
	const keys = keysOf(description)
	const optional = Object.entries(keys).flatMap(([key, described]) => (isOptional(described) ? key : []))
	if (optional.length < LEAST_OPTIONAL) return () => whole
	const checks = new Map<string, Check>()
	return (value) => {
		if (typeof value !== 'object' || value === null || Array.isArray(value)) return whole
		const set = optional.filter((key) => key in value).join()
		const known = checks.get(set)
		if (known !== undefined || checks.size === SETS) return known ?? whole
		const absent = new Set(optional.filter((key) => !(key in value)))
		const left = Object.entries(keys).filter(([key]) => !absent.has(key))
		const smaller = withKeys(
			schema as ObjectSchema,
			left.map(([key]) => key),
		)
		const check = make(smaller, { ...description, keys: Object.fromEntries(left) })
		checks.set(set, check)
		return check
	}
}

/** The parts of joi's description that are used here. */
interface Described {
	type: string
	flags?: { presence?: unknown; default?: unknown; artifact?: unknown }
	keys?: Record<string, Described>
	preferences?: { presence?: unknown }
	whens?: unknown
	externals?: unknown
	renames?: unknown
}

function describe(schema: Schema): Described | undefined {
	try {
		return schema.describe() as Described
	} catch {
		return undefined
	}
}

/** The described keys of an object. Empty if leaving out a key could change the result, for example because of a rename. */
function keysOf(description: Described | undefined): Record<string, Described> {
	if (!description) return {}
	try {
		const { type, keys = {}, whens, renames, preferences } = description
		const isPlain =
			type === 'object' && !whens && !renames && preferences?.presence === undefined && !hasLink(description)
		return isPlain ? keys : {}
	} catch {
		return {} // it contains an object that contains itself
	}
}

/** A link may refer to the schema of another key. */
function hasLink(part: unknown): boolean {
	if (typeof part !== 'object' || part === null) return false
	return (part as Partial<Described>).type === 'link' || Object.values(part).some(hasLink)
}

/** Whether a key that is absent is accepted and stays absent, whatever the other keys are. */
function isOptional({
	type,
	flags: { presence, default: value, artifact } = {},
	whens,
	externals,
}: Described): boolean {
	if (!plainTypes.has(type) || whens || externals) return false
	return presence !== 'required' && value === undefined && artifact === undefined
}

/** The same object with only these of its keys. */
function withKeys(schema: ObjectSchema, keys: string[]): Schema {
	return schema.keys({}).keys(Object.fromEntries(keys.map((key) => [key, schema.extract([key])])))
}
