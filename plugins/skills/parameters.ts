/** Describes the parameters of a skill to a model as JSON Schema, and checks the arguments of calls. */
import { Fault } from '../../core/errors.ts'
import { isObject } from '../../core/util/is-object.ts'
import type { Parameter } from './contract.ts'

/** A JSON Schema that the APIs of all models accept; some require `items` for a list. */
export function schemaOf(parameters: readonly Parameter[]): Record<string, unknown> {
	return {
		type: 'object',
		properties: Object.fromEntries(
			parameters.map(({ name, type, description, enum: values, default: fallback }) => [
				name,
				{
					type,
					...(type === 'array' && { items: {} }),
					...(description !== '' && { description }),
					...(values && { enum: values }),
					...(fallback !== undefined && { default: fallback }),
				},
			]),
		),
		required: parameters.filter((one) => one.required).map((one) => one.name),
		additionalProperties: false,
	}
}

/** The arguments with defaults. Converts nothing. Throws `invalid_arguments`, naming each invalid argument. */
export function checkArguments(
	parameters: readonly Parameter[],
	args: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
	const problems: string[] = []
	const checked: [name: string, value: unknown][] = []
	for (const { name, type, required, default: fallback, enum: values } of parameters) {
		const value = Object.hasOwn(args, name) ? args[name] : structuredClone(fallback)
		if (value === undefined) {
			if (required) problems.push(`"${name}" is missing`)
			continue
		}
		if (!fits(type, value)) problems.push(`"${name}" must be ${typeNames[type]}`)
		else if (values && !values.includes(value as string)) problems.push(`"${name}" must be one of ${values.join(', ')}`)
		checked.push([name, value])
	}
	const known = new Set(parameters.map((one) => one.name))
	for (const name of Object.keys(args)) if (!known.has(name)) problems.push(`"${name.slice(0, 64)}" is not a parameter`)
	if (problems.length > 0)
		throw new Fault('invalid_arguments', `the arguments are wrong: ${problems.slice(0, 20).join('; ')}`)
	return Object.fromEntries(checked)
}

export function fits(type: Parameter['type'], value: unknown): boolean {
	switch (type) {
		case 'integer':
			return Number.isInteger(value)
		case 'array':
			return Array.isArray(value)
		case 'object':
			return isObject(value)
		default:
			return typeof value === type
	}
}

const typeNames: Record<Parameter['type'], string> = {
	string: 'text',
	number: 'a number',
	integer: 'a whole number',
	boolean: 'true or false',
	array: 'a list',
	object: 'an object',
}
