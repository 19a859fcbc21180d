/**
 * Turns a server's questions to a person (elicitations in the protocol) into questions of the run. A form of several fields is
 * asked field by field; a JSON object answers all fields at once.
 */
import type { ElicitRequestFormParams, ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import { isFault } from '../../core/errors.ts'
import { isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import type { QuestionText } from '../../core/plugin.ts'
import { hintOf, readAnswer, readValue } from './fields.ts'
import type { Field, Value } from './fields.ts'

type Ask = (question: QuestionText) => Promise<string>

const FIELDS = 32
const ATTEMPTS = 3
/** Limits in characters: a complete question stays below the 4,000 of a run's question. */
const MESSAGE_LIMIT = 1_500
const ADDRESS_LIMIT = 2_000
const DECLINE = 'decline'
const SKIP = 'skip'

/** `scrub` redacts the server's texts. */
export async function elicit(
	request: ElicitRequestParams,
	server: string,
	scrub: (text: string) => string,
	ask: Ask,
): Promise<ElicitResult> {
	const message = `The MCP server "${server}" asks: ${scrub(request.message).slice(0, MESSAGE_LIMIT)}`
	try {
		return request.mode === 'url' ? await visit(request.url, message, ask) : await form(request, message, scrub, ask)
	} catch (error) {
		// The run was stopped, or the question expired.
		if (isFault(error)) return { action: 'cancel' }
		throw error
	}
}

/** Shows the complete address. Only the person opens it. */
async function visit(address: string, message: string, ask: Ask): Promise<ElicitResult> {
	const url = URL.parse(address)
	if (!url || !['http:', 'https:'].includes(url.protocol) || url.href.length > ADDRESS_LIMIT)
		return { action: 'decline' }
	const question = `${message}\n\nIt wants you to visit ${url.href}\n(the host is ${url.host}). Answer "done" afterwards, or "${DECLINE}".`
	const answer = await ask({ question, options: ['done', DECLINE] })
	return { action: isWord(answer, DECLINE) ? 'decline' : 'accept' }
}

async function form(
	{ requestedSchema }: ElicitRequestFormParams,
	message: string,
	scrub: Field['scrub'],
	ask: Ask,
): Promise<ElicitResult> {
	const required = new Set(requestedSchema.required)
	const fields = Object.entries(requestedSchema.properties).map(([name, schema]): Field => ({
		name,
		schema: (schema ?? {}) as Field['schema'],
		required: required.has(name),
		scrub,
	}))
	if (fields.length > FIELDS) return { action: 'decline' }
	if (fields.length === 0) {
		const answer = await ask({ question: message, options: ['accept', DECLINE] })
		return isWord(answer, DECLINE) ? { action: 'decline' } : { action: 'accept', content: {} }
	}

	const content = new Map<string, Value>()
	for (const at of fields.keys()) {
		const outcome = await askField(at, { fields, message, ask })
		if (outcome === DECLINE || outcome === 'cancel') return { action: outcome }
		if (outcome === SKIP) continue
		for (const [name, value] of outcome.values) content.set(name, value)
		if (outcome.whole) break
	}
	for (const field of fields) {
		const { name, schema } = field
		const fallback = schema.default === undefined ? undefined : readValue(field, schema.default)
		if (!content.has(name) && fallback && 'value' in fallback) content.set(name, fallback.value)
	}
	return { action: 'accept', content: Object.fromEntries(content) }
}

interface Form {
	fields: readonly Field[]
	message: string
	ask: Ask
}

interface ReadAnswer {
	values: Map<string, Value>
	/** It was a JSON object, which answers the complete form. */
	whole: boolean
}

async function askField(at: number, form: Form): Promise<ReadAnswer | typeof DECLINE | typeof SKIP | 'cancel'> {
	const { fields, ask } = form
	const field = fields[at] as Field
	let problem = ''
	for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
		const answer = await ask(questionFor(field, at, form, problem))
		if (isWord(answer, DECLINE)) return DECLINE
		if (isWord(answer, SKIP) && !field.required) return SKIP
		const all = fields.length > 1 ? readObject(answer, fields) : undefined
		if (all instanceof Map) return { values: all, whole: true }
		const read = all ?? readAnswer(field, answer)
		if ('value' in read) return { values: new Map([[field.name, read.value]]), whole: false }
		problem = read.problem
	}
	return 'cancel'
}

function questionFor(field: Field, at: number, { fields, message }: Form, problem: string): QuestionText {
	const { text, options } = hintOf(field)
	const count = fields.length > 1 ? ` (${at + 1} of ${fields.length})` : ''
	const words = [...(field.required ? [] : [`"${SKIP}" leaves it out`]), `"${DECLINE}" refuses`]
	const all = fields.length > 1 && at === 0 ? ' A JSON object answers all at once.' : ''
	const wrong = problem === '' ? '' : `That answer is not valid: ${problem}.\n\n`
	const question = `${wrong}${message}\n\n${text}${count}. ${words.join(', ')}.${all}`
	return { question, ...(options && { options: field.required ? options : [...options, SKIP] }) }
}

/** Undefined if the answer is not a JSON object; a problem if its fields are invalid. */
function readObject(answer: string, fields: readonly Field[]): Map<string, Value> | { problem: string } | undefined {
	const parsed = jsonIn(answer)
	if (!isObject(parsed)) return undefined
	const content = new Map<string, Value>()
	for (const [name, value] of Object.entries(parsed)) {
		const field = fields.find((one) => one.name === name)
		if (!field) return { problem: `there is no field "${name.slice(0, 100)}"` }
		const read = readValue(field, value)
		if ('problem' in read) return { problem: `${name}: ${read.problem}` }
		content.set(name, read.value)
	}
	const missing = fields.find((field) => field.required && !content.has(field.name))
	return missing ? { problem: `${missing.name} is missing` } : content
}

function isWord(answer: string, word: string): boolean {
	return answer.trim().toLowerCase() === word
}
