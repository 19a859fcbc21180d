/** Parses the document of a skill strictly. Errors name the line and what to change. */
import type { ArraySchema, CustomHelpers, ErrorReport, Schema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { FieldError } from '../../core/errors.ts'
import type { Parameter, Permissions } from './contract.ts'
import { hasBlock, readProgram } from './fence.ts'
import type { FencedProgram } from './fence.ts'
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import { invalid, readFrontMatter } from './front-matter.ts'
import { fits } from './parameters.ts'

export interface SkillDocument {
	name: string
	description: string
	parameters: Parameter[]
	/** The program that is scanned, reviewed and executed. Null for instructions. */
	program: FencedProgram | null
	permissions: Permissions
	/** Other keys of the front matter, which the gateway ignores. */
	metadata: Record<string, unknown>
	body: string
	/** The document's line of a key of the front matter, such as `['permissions', 'hosts', 0]`. */
	lineOf(path: readonly (string | number)[]): number
	/** Problems that do not prevent the installation. */
	warnings: string[]
}

/** Limit of a document, in bytes. */
export const DOCUMENT_LIMIT = 272 * 1024
const BODY_LIMIT = 256 * 1024
/** The default of `runs.limits.result_characters`: a model gets only the beginning and the end of a longer tool result. */
const RESULT_CHARACTERS = 32 * 1024
const ERROR_LIMIT = 20
/** Limit of characters of a description in the Agent Skills standard, and in the APIs of models. */
const STANDARD_DESCRIPTION = 1024
const DESCRIPTION_LIMIT = 8 * 1024

/** The text of a skill's document. Throws `skill_invalid` for one that is too long, or is not UTF-8. */
export function documentOf(files: readonly SkillFile[]): string {
	const bytes = files.find((file) => file.path === DOCUMENT)?.bytes ?? new Uint8Array()
	if (bytes.length > DOCUMENT_LIMIT)
		throw new Fault('skill_invalid', `the document has ${bytes.length} bytes; the limit is ${DOCUMENT_LIMIT}`)
	try {
		// Keeps a byte order mark, since the digest covers it.
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch (error) {
		throw new Fault('skill_invalid', 'the document is not UTF-8 text', { cause: error })
	}
}

/** Throws `skill_invalid`. */
export async function readDocument(text: string): Promise<SkillDocument> {
	if (!text.isWellFormed() || text.includes('\0')) throw invalid(1, 'the document is not text; save it as UTF-8')
	const { data, lineOf, body, bodyLine } = readFrontMatter(text)
	const bytes = Buffer.byteLength(body)
	if (bytes > BODY_LIMIT) throw invalid(bodyLine, `the body has ${bytes} bytes; the limit is ${BODY_LIMIT}`)

	const { name, description, parameters, runtime, permissions, ...metadata } = check(data, lineOf)
	const program = runtime === undefined ? null : await readProgram(body, bodyLine)
	if (!program && body.trim() === '') {
		throw invalid(bodyLine, 'the body is empty; write instructions after the front matter, or a program')
	}
	const document = { name, description, parameters, program, permissions, metadata, body, lineOf }
	return { ...document, warnings: await warningsOf(document) }
}

interface FrontMatter extends Pick<SkillDocument, 'name' | 'description' | 'parameters' | 'permissions'> {
	runtime?: 'javascript'
	[key: string]: unknown
}

const list = (items: Schema): ArraySchema => Joi.array().items(items).max(64).unique().default([])

const parameter = Joi.object({
	name: Joi.string()
		.pattern(/^(?!__proto__$)[A-Za-z_][A-Za-z0-9_-]{0,63}$/)
		.required()
		.messages({ 'string.pattern.base': '{#label} must be 1 to 64 of A-Z a-z 0-9 _ - and begin with a letter or _' }),
	type: Joi.valid('string', 'number', 'integer', 'boolean', 'array', 'object').required(),
	required: Joi.boolean().default(false),
	description: Joi.string().allow('').max(1024).default(''),
	default: Joi.any(),
	enum: Joi.array().items(Joi.string(), Joi.number(), Joi.boolean()).min(1).max(100).unique(),
}).custom(fitsItsType)

const head = Joi.object({
	name: Joi.string().max(64).custom(printable).required(),
	description: Joi.string()
		.max(DESCRIPTION_LIMIT)
		.pattern(/\S/)
		.required()
		.messages({ 'string.pattern.base': '{#label} must say what the skill does and when to use it' }),
	parameters: Joi.array()
		.items(parameter)
		.max(64)
		.unique('name')
		.empty(null)
		.default([])
		.messages({ 'array.unique': 'there is another parameter of this name; rename one' }),
	runtime: Joi.valid('javascript').messages({
		'any.only': '{#label} must be javascript, also for a block marked ts; leave it out for instructions',
	}),
	permissions: Joi.object({
		primitives: list(
			Joi.string()
				.max(128)
				.pattern(/^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$/)
				.messages({ 'string.pattern.base': '{#label} must be the name of a primitive, such as memory.recall' }),
		),
		hosts: list(Joi.string().max(260).custom(hostName)),
		secrets: list(
			Joi.string()
				.pattern(/^[A-Za-z0-9_.-]{1,128}$/)
				.messages({ 'string.pattern.base': '{#label} must be the name of a secret: 1 to 128 of A-Z a-z 0-9 _ . -' }),
		),
	})
		.empty(null)
		.default({ primitives: [], hosts: [], secrets: [] }),
})
	.unknown()
	.prefs({ convert: false, abortEarly: false, errors: { wrap: { label: false } } })

const messages = {
	'any.required': '{#label} is missing',
	'object.unknown': '{#label} is not a known key; remove it',
	'string.base': '{#label} must be text; quote it',
	'string.empty': '{#label} must not be empty',
	'boolean.base': '{#label} must be true or false',
	'array.base': '{#label} must be a list',
	'object.base': '{#label} must be a map',
	'array.unique': '{#label} is listed twice; keep one',
}

function check(data: Record<string, unknown>, lineOf: SkillDocument['lineOf']): FrontMatter {
	const { value, error } = head.validate(data, { messages })
	if (!error) return value as FrontMatter
	const errors: FieldError[] = error.details.slice(0, ERROR_LIMIT).map(({ path, message }) => ({
		path: path.join('.'),
		message: `line ${lineOf(path)}: ${message}`,
	}))
	throw new Fault('skill_invalid', errors.map((one) => one.message).join('; '), { errors })
}

function fitsItsType(value: Parameter, helpers: CustomHelpers): Parameter | ErrorReport {
	const wrong = (key: string): ErrorReport =>
		helpers.message({ custom: `{#label}.${key} does not fit the type ${value.type}` })
	for (const one of value.enum ?? []) if (!fits(value.type, one)) return wrong('enum')
	if (value.default === undefined) return value
	if (value.required)
		return helpers.message({ custom: '{#label} is required and has a default; remove one of the two' })
	if (!fits(value.type, value.default)) return wrong('default')
	if (value.enum && !value.enum.includes(value.default as string)) {
		return helpers.message({ custom: '{#label}.default is not among {#label}.enum' })
	}
	return value
}

/** Ensures that names which look the same are the same: no control or invisible characters, no leading, trailing or double spaces. */
function printable(text: string, helpers: CustomHelpers): string | ErrorReport {
	const isPrintable =
		/^[^\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}]/u.test(text) &&
		text.normalize('NFC') === text &&
		text.trim() === text &&
		!text.includes('  ') &&
		!/[^\P{Z} ]|[\p{C}\p{Default_Ignorable_Code_Point}]/u.test(text)
	if (isPrintable) return text
	return helpers.message({
		custom: '{#label} must be 1 to 64 printable characters, without invisible ones and without spaces at its ends',
	})
}

function hostName(text: string, helpers: CustomHelpers): string | ErrorReport {
	const lower = text.toLowerCase()
	const match = /^([a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+)(?::[1-9][0-9]{0,4})?$/.exec(lower)
	const last = match?.[1]?.split('.').at(-1) ?? '0'
	if (match && !/^(?:[0-9]+|0x[0-9a-f]*)$/.test(last)) return lower
	return helpers.message({
		custom:
			'{#label} must be the complete name of one host, such as api.example.com, not an IP address, and without * or a path',
	})
}

const STANDARD_NAME = /^(?!.*--)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/

async function warningsOf(document: Omit<SkillDocument, 'warnings'>): Promise<string[]> {
	const { name, description, program, permissions, metadata, body } = document
	const warnings: string[] = []
	if (!STANDARD_NAME.test(name))
		warnings.push(
			`The name "${name}" is outside the Agent Skills standard (a-z, 0-9 and single hyphens); the tool's name is derived from it.`,
		)
	if (description.length > STANDARD_DESCRIPTION)
		warnings.push(
			`The description has ${description.length} characters, but the Agent Skills standard allows ${STANDARD_DESCRIPTION}: a model gets the rest outside of the list of tools.`,
		)
	if (!program && Object.values(permissions).some((names) => names.length > 0))
		warnings.push('It declares permissions, but has no program (runtime: javascript); instructions need none.')
	if (!program && (await hasBlock(body)))
		warnings.push(
			'It has a block of code that does not run, since runtime: javascript is not set; a model can only read it.',
		)
	if (!program && body.length > RESULT_CHARACTERS)
		warnings.push(
			`The instructions have ${body.length} characters. If this is more than runs.limits.result_characters (default ${RESULT_CHARACTERS}), a model gets only the beginning and the end, and has to read the rest in parts.`,
		)
	if (metadata['allowed-tools'] !== undefined)
		warnings.push('allowed-tools is only a request; the approval of the skill does not grant these tools.')
	return warnings
}
