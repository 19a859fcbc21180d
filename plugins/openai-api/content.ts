/** The content of a message: text, or parts that are text, images, files and recordings. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { fieldsOf } from '../../core/util/is-object.ts'
import type { AttachmentSource } from '../attachments/contract.ts'
import { paramError } from './errors.ts'

interface ContentPart {
	type: string
	text?: string
	refusal?: string
	[field: string]: unknown
}

export type MessageContent = string | ContentPart[] | null | undefined

/** `sources`: where to load the attachments from. */
export interface ParsedContent {
	content: string
	sources?: AttachmentSource[]
}

const texts = new Set(['text', 'input_text', 'output_text', 'refusal'])

export const content = Joi.alternatives(
	Joi.string().allow(''),
	Joi.array().items(
		Joi.object({ type: Joi.string().max(64).required(), text: Joi.string().allow('') })
			.unknown()
			.description(
				'A part: text (text, input_text, output_text), an image (image_url, input_image), a file (file, input_file) or a recording (input_audio).',
			),
	),
).description('Text, or parts.')

/** As `parseContent`, for text only. Throws `invalid_request` for other parts. */
export function textOf(value: MessageContent, param: string): string {
	const { content, sources } = parseContent(value, param)
	if (!sources) return content
	throw paramError(param, `${param} may contain text only; send images and files in a message of the user`)
}

/**
 * The text of all parts, and the attachments. `[attachment 1]` marks an attachment between two texts. `param`: the location of
 * the content, for errors. Throws `invalid_request` for unknown or incomplete parts.
 */
export function parseContent(value: MessageContent, param: string): ParsedContent {
	if (typeof value === 'string') return { content: value }
	const sources: AttachmentSource[] = []
	const lines: { text: string; isText: boolean }[] = []
	for (const [at, part] of (value ?? []).entries()) {
		const text = part.type === 'refusal' ? part.refusal : part.text
		if (texts.has(part.type) && typeof text === 'string') {
			lines.push({ text, isText: true })
			continue
		}
		sources.push(sourceOf(part, `${param}[${at}]`))
		lines.push({ text: `[attachment ${sources.length}]`, isText: false })
	}
	const [first, last] = [lines.findIndex(({ isText }) => isText), lines.findLastIndex(({ isText }) => isText)]
	const shown = lines.filter(({ isText }, at) => isText || (at > first && at < last && first >= 0))
	return { content: shown.map(({ text }) => text).join('\n'), ...(sources.length > 0 && { sources }) }
}

function sourceOf(part: ContentPart, param: string): AttachmentSource {
	const inner = fieldsOf(part[part.type])
	switch (part.type) {
		case 'image_url':
			return { url: textIn(part.image_url) ?? textIn(inner.url) ?? missing(param, 'image_url.url') }
		case 'input_image':
			return { url: textIn(part.image_url) ?? missing(param, 'image_url') }
		case 'file':
			return fileOf(inner, param, 'file.file_data')
		case 'input_file':
			return fileOf(part, param, 'file_data')
		case 'input_audio': {
			const { data, format } = fieldsOf(part.input_audio)
			return {
				data: textIn(data) ?? missing(param, 'input_audio.data'),
				...(textIn(format) !== undefined && { media_type: `audio/${textIn(format)}` }),
			}
		}
		default:
			throw paramError(
				param,
				`${param} has the type "${part.type.slice(0, 64)}"; supported types are text, image_url, input_image, file, input_file and input_audio`,
			)
	}
}

function fileOf(file: Record<string, unknown>, param: string, field: string): AttachmentSource {
	const [data, url, name] = [textIn(file.file_data), textIn(file.file_url), textIn(file.filename)]
	const about = name === undefined ? {} : { name }
	if (data !== undefined) return { ...about, data }
	return { ...about, url: url ?? missing(param, field) }
}

/** Clients may send the id of a file instead, which refers to a file on OpenAI's servers. */
function missing(param: string, field: string): never {
	throw paramError(param, `${param} lacks ${field}; send the content itself, since the gateway stores no files by id`)
}

function textIn(value: unknown): string | undefined {
	return typeof value === 'string' && value !== '' ? value : undefined
}
