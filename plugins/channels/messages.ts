import { Joi } from '../../core/util/lazy-joi.ts'
import type { IncomingMessage } from './adapter.ts'

/** As for a prompt. */
const TEXT_LIMIT_BYTES = 100 * 1024
const WORDS_LIMIT = 256
/** Characters kept of a quoted message: more than the model sees, since the redactor recognizes only whole secrets. */
const QUOTED_LIMIT = 4_096

const externalId = Joi.string().pattern(/^[\x20-\x7e]{1,128}$/, '1 to 128 printable ASCII characters')
const cursor = Joi.string().max(4_096)
const words = Joi.string().custom((text: string) => text.slice(0, WORDS_LIMIT).toWellFormed())
const file = Joi.object({
	what: words.required(),
	ref: Joi.string().max(4_096).required(),
	name: words.allow(''),
	media_type: words.allow(''),
	size: Joi.number().min(0),
	seconds: Joi.number().min(0),
})
const quoted = Joi.object({
	text: Joi.string()
		.allow('')
		.custom((text: string) => text.slice(0, QUOTED_LIMIT).toWellFormed())
		.required(),
	sender: words.allow('', null),
	own: Joi.boolean(),
})
const message = Joi.object<IncomingMessage>({
	id: externalId.required(),
	chat: Joi.object({
		id: externalId.required(),
		thread_id: externalId,
		kind: Joi.valid('private', 'group').required(),
		within: Joi.array().items(externalId).max(16),
	}).required(),
	sender: Joi.object({ id: externalId.required(), name: words.allow('') }).required(),
	text: Joi.string().allow('').custom(cutBytes).required(),
	addressed: Joi.boolean().required(),
	attachment: words.allow(''),
	attachments: Joi.array().items(file).max(100),
	quoted,
	cursor,
})
	.required()
	.prefs({
		convert: false,
		stripUnknown: true,
		errors: { label: 'path' },
		messages: { 'string.pattern.name': '{#label} must be {#name}' }, // joi's own repeats what was sent
	})

/** A plain copy of an adapter's message with only the known fields, its texts cut to their limits. Throws if it is invalid. */
export function readMessage(given: unknown): IncomingMessage {
	const { error, value } = message.validate(given)
	if (error) throw error
	const { attachments, ...rest } = JSON.parse(JSON.stringify(value)) as IncomingMessage
	return { ...rest, ...(attachments?.length && { attachments }) }
}

/** Throws an error that states the problem. */
export function readCursor(given: unknown): string {
	return Joi.attempt(given, cursor.required().label('cursor')) as string
}

/** Cuts between characters, never within one. */
function cutBytes(text: string): string {
	if (text.length * 3 <= TEXT_LIMIT_BYTES) return text.toWellFormed()
	const { read } = new TextEncoder().encodeInto(text, new Uint8Array(TEXT_LIMIT_BYTES))
	return text.slice(0, read).toWellFormed()
}
