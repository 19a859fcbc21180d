/** One field of a form: the question for it, and the value of an answer. */
import { isObject } from '../../core/util/is-object.ts'

export interface Field {
	name: string
	/** A primitive JSON Schema; written by the server, so it may contain anything. */
	schema: Record<string, unknown>
	required: boolean
	/** Redacts the server's texts. Call it before any cut. */
	scrub(text: string): string
}

export type Value = string | number | boolean | string[]

export type Read = { value: Value } | { problem: string }

const OPTIONS = 20
const OPTION_LIMIT = 200
const TEXT_LIMIT = 500

/** The text of the question for a field; with `options` if it has few possible answers. */
export function hintOf({ name, schema, scrub }: Field): { text: string; options?: string[] } {
	const { title, description, type } = schema
	const about = [title, description].filter((one) => typeof one === 'string' && one !== '').join(': ')
	const label = about === '' ? name : `${name}: ${about}`
	const values = choicesOf(schema)
	const kind = values ? chooseFrom(values, type === 'array', scrub) : kindOf(schema, scrub)
	const fallback = schema.default === undefined ? '' : `; by default ${JSON.stringify(schema.default)}`
	const text = `${scrub(label).slice(0, TEXT_LIMIT)} [${kind}${scrub(fallback).slice(0, TEXT_LIMIT)}]`
	if (type === 'boolean') return { text, options: ['yes', 'no'] }
	const labels = values?.map((one) => one.label)
	const few =
		labels && type !== 'array' && labels.length <= OPTIONS && labels.every((one) => one.length <= OPTION_LIMIT)
	return { text, ...(few && { options: labels }) }
}

/** Reads what a person wrote. */
export function readAnswer(field: Field, answer: string): Read {
	const { schema } = field
	const text = answer.trim()
	switch (schema.type) {
		case 'boolean':
			if (/^(yes|y|true|1)$/i.test(text)) return { value: true }
			return /^(no|n|false|0)$/i.test(text) ? { value: false } : { problem: 'answer yes or no' }
		case 'integer':
		case 'number':
			return text === '' ? { problem: 'answer with a number' } : readValue(field, Number(text))
		case 'array':
			return readValue(field, text === '' ? [] : text.split(',').map((one) => one.trim()))
		default:
			return readValue(field, choicesOf(schema) ? text : answer)
	}
}

/** Checks a value from a JSON answer or a default. */
export function readValue({ schema, scrub }: Field, value: unknown): Read {
	const values = choicesOf(schema)
	switch (schema.type) {
		case 'boolean':
			return typeof value === 'boolean' ? { value } : { problem: 'answer true or false' }
		case 'integer':
		case 'number':
			return readNumber(schema, value)
		case 'array': {
			if (!Array.isArray(value) || !value.every((one) => typeof one === 'string')) {
				return { problem: 'answer with a list, separated by commas' }
			}
			const chosen = value.map((one: string) => (values ? valueOf(values, one) : one))
			if (!chosen.every((one) => one !== undefined))
				return { problem: `each must be ${chooseFrom(values ?? [], false, scrub)}` }
			const problem = outside(chosen.length, schema.minItems, schema.maxItems, 'entries')
			return problem === undefined ? { value: chosen } : { problem }
		}
		default: {
			if (typeof value !== 'string') return { problem: 'answer with text' }
			if (values) {
				const chosen = valueOf(values, value)
				return chosen === undefined ? { problem: `it must be ${chooseFrom(values, false, scrub)}` } : { value: chosen }
			}
			const problem = outside(value.length, schema.minLength, schema.maxLength, 'characters')
			return problem === undefined ? { value } : { problem }
		}
	}
}

function readNumber({ type, minimum, maximum }: Record<string, unknown>, value: unknown): Read {
	if (typeof value !== 'number' || !Number.isFinite(value)) return { problem: 'answer with a number' }
	if (type === 'integer' && !Number.isInteger(value)) return { problem: 'answer with a whole number' }
	if (typeof minimum === 'number' && value < minimum) return { problem: `it must be at least ${minimum}` }
	if (typeof maximum === 'number' && value > maximum) return { problem: `it must be at most ${maximum}` }
	return { value }
}

function outside(count: number, min: unknown, max: unknown, what: string): string | undefined {
	if (typeof min === 'number' && count < min) return `at least ${min} ${what} are required`
	if (typeof max === 'number' && count > max) return `at most ${max} ${what} are allowed`
	return undefined
}

interface Choice {
	value: string
	label: string
}

/** From `enum`, with or without names, or from `oneOf` or `anyOf` with titles. For a list, from its items. */
function choicesOf(schema: Record<string, unknown>): Choice[] | undefined {
	const single = schema.type === 'array' && isObject(schema.items) ? schema.items : schema
	const names = Array.isArray(schema.enumNames) ? (schema.enumNames as unknown[]) : []
	if (Array.isArray(single.enum)) {
		return single.enum.map((value, at) => ({ value: String(value), label: String(names[at] ?? value) }))
	}
	const titled = single.oneOf ?? single.anyOf
	if (!Array.isArray(titled)) return undefined
	return titled.filter(isObject).map((one) => ({ value: String(one.const), label: String(one.title ?? one.const) }))
}

function valueOf(values: readonly Choice[], text: string): string | undefined {
	const wanted = text.trim().toLowerCase()
	const found = values.find((one) => one.value === text) ?? values.find((one) => one.label.toLowerCase() === wanted)
	return (found ?? values.find((one) => one.value.toLowerCase() === wanted))?.value
}

function chooseFrom(values: readonly Choice[], several: boolean, scrub: Field['scrub']): string {
	const list = scrub(values.map((one) => one.label).join(', '))
	return `${several ? 'some of' : 'one of'} ${list.slice(0, TEXT_LIMIT)}${several ? ', separated by commas' : ''}`
}

function kindOf({ type, format }: Record<string, unknown>, scrub: Field['scrub']): string {
	if (type === 'boolean') return 'yes or no'
	if (type === 'integer') return 'a whole number'
	if (type === 'number') return 'a number'
	if (type === 'array') return 'a list, separated by commas'
	return typeof format === 'string' ? `text: ${scrub(format).slice(0, 50)}` : 'text'
}
