/** Whether data that fitted one JSON Schema still fits another. Supports the keywords that the API's document and gateway.yaml use. */

export interface Schema {
	$ref?: string
	type?: string | string[]
	enum?: unknown[]
	const?: unknown
	default?: unknown
	properties?: Record<string, Schema>
	patternProperties?: Record<string, Schema>
	additionalProperties?: boolean | Schema
	required?: string[]
	items?: Schema
	anyOf?: Schema[]
	oneOf?: Schema[]
	allOf?: Schema[]
	pattern?: string
	format?: string
	minimum?: number
	maximum?: number
	minLength?: number
	maxLength?: number
	minItems?: number
	maxItems?: number
	maxProperties?: number
	uniqueItems?: boolean
}

/** A document with schemas that references name by `#/components/schemas/…` or `#/$defs/…`. */
export interface Definitions {
	released: Readonly<Record<string, Schema>>
	current: Readonly<Record<string, Schema>>
}

export interface Comparison {
	definitions: Definitions
	/** `read`: what the gateway accepts; `written`: what it sends. */
	direction: 'read' | 'written'
	/** True: a changed default is a break, since it changes the behaviour for those who rely on it. */
	defaults?: boolean
	/** Called with the place and what breaks there: `Agent.config.params`, `was removed`. */
	report(place: string, problem: string): void
}

/**
 * Reports what breaks between a released schema and the current one.
 *
 * The gateway must accept what it accepted, so a field that it reads must not be removed, become required, or accept less. What it
 * sends must keep its fields, their types and their presence; new fields, and new values of a choice, are no break
 * (docs/compatibility.md). A schema with a name is compared once, under that name.
 */
export function compareSchemas(comparison: Comparison): (released: Schema, current: Schema, place: string) => void {
	const { definitions, direction, defaults = false, report } = comparison
	const seen = new Set<string>()
	return compare

	function compare(released: Schema, current: Schema, place: string): void {
		const before = resolve(released, definitions.released)
		const now = resolve(current, definitions.current)
		const at = released.$ref === undefined ? place : nameOf(released.$ref)
		if (released.$ref !== undefined) {
			const key = `${at} ${current.$ref ?? place}`
			if (seen.has(key)) return
			seen.add(key)
		}
		const breaks = problemsOf(before, now)
		for (const problem of breaks) report(at, problem)
		if (breaks.some((problem) => problem.startsWith('is no longer') || problem.endsWith('anything now'))) return
		if (defaults && before.default !== undefined && JSON.stringify(before.default) !== JSON.stringify(now.default))
			report(at, `has the default ${JSON.stringify(now.default)}, which was ${JSON.stringify(before.default)}`)
		compareFields(before, now, at)
		if (before.items && now.items) compare(before.items, now.items, `${at}[]`)
		compareVariants(before, now, at)
	}

	function compareFields(before: Schema, now: Schema, at: string): void {
		const fields = fieldsOf(now)
		for (const [name, field] of Object.entries(before.properties ?? {})) {
			const place = `${at}.${name}`
			const other = fields(name)
			if (other) compare(field, other, place)
			else if (now.properties || now.additionalProperties === false) report(place, 'was removed')
			const was = before.required?.includes(name) ?? false
			const is = now.required?.includes(name) ?? false
			if (direction === 'written' && was && !is && other) report(place, 'may be absent now')
			if (direction === 'read' && is && !was) report(place, 'is required now')
		}
		if (direction === 'read')
			for (const name of now.required ?? [])
				if (!Object.hasOwn(before.properties ?? {}, name) && !before.required?.includes(name))
					report(`${at}.${name}`, 'is required now')
		for (const [pattern, field] of Object.entries(before.patternProperties ?? {})) {
			const other = Object.values(now.patternProperties ?? {})[0]
			if (other) compare(field, other, `${at}.*`)
			else report(`${at}.*`, `was removed: names such as ${pattern}`)
		}
		if (typeof before.additionalProperties === 'object' && typeof now.additionalProperties === 'object')
			compare(before.additionalProperties, now.additionalProperties, `${at}.*`)
	}

	/** Each variant must fit one of the other side. Responses may get new variants, like choices, if there were several. */
	function compareVariants(before: Schema, now: Schema, at: string): void {
		const [old, present] = [variantsOf(before), variantsOf(now)]
		if (old.length === 0 && present.length === 0) return
		const mayGrow = direction === 'read' || old.length > 1
		const both: [Schema[], Schema[]] = [old.length > 0 ? old : [before], present.length > 0 ? present : [now]]
		const [ours, others] = mayGrow ? both : both.toReversed()
		for (const [index, one] of (ours ?? []).entries()) {
			const pair = (other: Schema): [Schema, Schema] => (mayGrow ? [one, other] : [other, one])
			if (others?.some((other) => fits(...pair(other)))) continue
			const counterpart = others?.length === ours?.length ? others?.[index] : undefined
			if (counterpart) compare(...pair(counterpart), at)
			else report(at, `${mayGrow ? 'has lost' : 'may now be'} the variant ${brief(one)}`)
		}
	}

	function fits(released: Schema, current: Schema): boolean {
		let isFitting = true
		compareSchemas({ ...comparison, report: () => void (isFitting = false) })(released, current, '')
		return isFitting
	}

	/** Differences of the schema itself, without its fields, items and variants. */
	function problemsOf(before: Schema, now: Schema): string[] {
		const problems: string[] = []
		const [from, to] = direction === 'read' ? [before, now] : [now, before]
		const lost = typesOf(from).filter((type) => !accepts(typesOf(to), type))
		if (lost.length > 0)
			problems.push(direction === 'read' ? `is no longer ${lost.join(' or ')}` : `may be ${lost.join(' or ')} now`)
		if (isAnything(from) && typesOf(to).length > 0)
			problems.push(
				direction === 'read' ? `is no longer anything, but ${typesOf(to).join(' or ')}` : 'may be anything now',
			)
		if (direction === 'written') return problems
		const choices = choicesOf(now)
		const gone = choicesOf(before)?.filter((one) => choices && !choices.includes(one)) ?? []
		if (gone.length > 0) problems.push(`no longer takes ${gone.map((one) => JSON.stringify(one)).join(', ')}`)
		else if (choices && !choicesOf(before)) problems.push(`takes only ${JSON.stringify(choices)} now`)
		for (const limit of ['minimum', 'minLength', 'minItems'] as const)
			if ((now[limit] ?? -Infinity) > (before[limit] ?? -Infinity) && !(limit !== 'minimum' && now[limit] === 0))
				problems.push(`has a ${limit} of ${now[limit]}, which was ${before[limit] ?? 'none'}`)
		for (const limit of ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const)
			if ((now[limit] ?? Infinity) < (before[limit] ?? Infinity))
				problems.push(`has a ${limit} of ${now[limit]}, which was ${before[limit] ?? 'none'}`)
		for (const rule of ['pattern', 'format'] as const)
			if (now[rule] !== undefined && now[rule] !== before[rule]) problems.push(`has the ${rule} ${now[rule]} now`)
		if (now.uniqueItems && !before.uniqueItems) problems.push('refuses repeated items now')
		if (
			now.additionalProperties === false &&
			before.additionalProperties !== false &&
			typesOf(before).includes('object')
		)
			problems.push('refuses unknown fields now')
		return problems
	}
}

function resolve(schema: Schema, definitions: Readonly<Record<string, Schema>>): Schema {
	const found = schema.$ref === undefined ? schema : definitions[nameOf(schema.$ref)]
	if (!found) throw new Error(`no schema ${schema.$ref}`)
	const { allOf, ...own } = found
	if (!allOf) return own
	return [own, ...allOf.map((part) => resolve(part, definitions))].reduce((merged, part) => ({
		...merged,
		...part,
		properties: { ...merged.properties, ...part.properties },
		required: [...(merged.required ?? []), ...(part.required ?? [])],
	}))
}

function nameOf(ref: string): string {
	return ref.slice(ref.lastIndexOf('/') + 1)
}

function typesOf({ type, properties }: Schema): string[] {
	return type === undefined ? (properties ? ['object'] : []) : [type].flat()
}

function accepts(types: readonly string[], type: string): boolean {
	return types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'))
}

/** Whether it accepts any value. */
function isAnything(schema: Schema): boolean {
	const rules = ['$ref', 'type', 'enum', 'const', 'properties', 'required', 'anyOf', 'oneOf', 'allOf'] as const
	return rules.every((rule) => schema[rule] === undefined)
}

function choicesOf(schema: Schema): unknown[] | undefined {
	return schema.enum ?? (schema.const === undefined ? undefined : [schema.const])
}

function variantsOf({ anyOf, oneOf }: Schema): Schema[] {
	return anyOf ?? oneOf ?? []
}

/** Returns the schema of a field by its name, if the object accepts such a field. */
function fieldsOf({ properties = {}, patternProperties = {} }: Schema): (name: string) => Schema | undefined {
	return (name) =>
		Object.hasOwn(properties, name)
			? properties[name]
			: Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern).test(name))?.[1]
}

function brief(schema: Schema): string {
	const text = JSON.stringify(schema)
	return text.length > 100 ? `${text.slice(0, 100)}…` : text
}
