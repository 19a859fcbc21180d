import { Joi } from '../../core/util/lazy-joi.ts'
import type { IncomingFile, IncomingMessage } from './adapter.ts'

/** The limit of a prompt. */
const TEXT_LIMIT_BYTES = 100 * 1024
const WORDS_LIMIT = 256

const externalId = Joi.string().pattern(/^[\x20-\x7e]{1,128}$/, '1 to 128 printable ASCII characters')
const cursor = Joi.string().max(4_096)
const message = Joi.object<IncomingMessage>({
	id: externalId.required(),
	chat: Joi.object({
		id: externalId.required(),
		thread_id: externalId,
		kind: Joi.valid('private', 'group').required(),
		within: Joi.array().items(externalId).max(16),
	}).required(),
	sender: Joi.object({ id: externalId.required(), name: Joi.string().allow('') }).required(),
	text: Joi.string().allow('').required(),
	addressed: Joi.boolean().required(),
	attachment: Joi.string().allow(''),
	attachments: Joi.array()
		.items(
			Joi.object({
				what: Joi.string().required(),
				ref: Joi.string().max(4_096).required(),
				name: Joi.string().allow(''),
				media_type: Joi.string().allow(''),
				size: Joi.number().min(0),
				seconds: Joi.number().min(0),
			}),
		)
		.max(100),
	cursor,
})
	.required()
	.prefs({
		convert: false,
		stripUnknown: true,
		errors: { label: 'path' },
		messages: { 'string.pattern.name': '{#label} must be {#name}' }, // joi's own repeats what was sent
	})

/**
 * A plain copy of the known fields of an adapter's message: texts are well formed, and cut to their limits.
 * Throws, saying what is wrong with it.
 */
export function readMessage(given: unknown): IncomingMessage {
	const { error, value } = message.validate(given)
	if (error) throw error
	const { id, chat, sender, text, addressed, attachment, attachments, cursor } = value
	const name = sender.name === undefined ? undefined : words(sender.name)
	return {
		id,
		chat: { ...chat, ...(chat.within && { within: [...chat.within] }) },
		sender: { id: sender.id, ...(name !== undefined && { name }) },
		text: cutBytes(text.toWellFormed(), TEXT_LIMIT_BYTES),
		addressed,
		...(attachment !== undefined && { attachment: words(attachment) }),
		...(attachments?.length && { attachments: attachments.map(readFile) }),
		...(cursor !== undefined && { cursor }),
	}
}

function readFile({ what, ref, name, media_type, size, seconds }: IncomingFile): IncomingFile {
	return {
		what: words(what),
		ref,
		...(name !== undefined && { name: words(name) }),
		...(media_type !== undefined && { media_type: words(media_type) }),
		...(size !== undefined && { size }),
		...(seconds !== undefined && { seconds }),
	}
}

/** Throws, saying what is wrong with it. */
export function readCursor(given: unknown): string {
	return Joi.attempt(given, cursor.required().label('cursor')) as string
}

function words(text: string): string {
	return text.slice(0, WORDS_LIMIT).toWellFormed()
}

/** Never cuts a character in two. */
function cutBytes(text: string, limit: number): string {
	if (text.length * 3 <= limit) return text
	const bytes = Buffer.from(text)
	if (bytes.length <= limit) return text
	let end = limit
	while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--
	return bytes.toString('utf8', 0, end)
}
