/** The content of a message for a model: its text, then its attachments in a form that the dialect can send, or in words. */
import { decodeText, isTextType } from '../text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import { withoutOwnTags } from '../context/own-tags.ts'
import type { ModelRequest, Turn } from '../models/provider.ts'
import type { Traits } from '../models/traits.ts'
import { aboutAttachment, lineOf } from './words.ts'

/** The media types that a dialect can send, for each kind of attachment. */
export interface AcceptedMedia {
	images: ReadonlySet<string>
	/** Limit of the bytes of an image; larger ones are described in words. */
	image_bytes?: number
	/** Without text files, which every dialect can send as text. */
	files: ReadonlySet<string>
	audio: ReadonlySet<string>
}

export type Shown =
	| { kind: 'text'; text: string }
	| { kind: 'image' | 'file' | 'audio'; media_type: string; name: string; base64: string }

/** Limit of the characters of a text file. */
export const TEXT_LIMIT = 100_000

/** The text first, then the attachments in order. A text is never empty. */
export function shownOf(
	turn: Turn,
	{ files }: Pick<ModelRequest, 'files'>,
	traits: Traits,
	accepted: AcceptedMedia,
): Shown[] {
	const text: Shown[] = turn.content === '' ? [] : [{ kind: 'text', text: turn.content }]
	if (turn.role === 'assistant' || !turn.attachments) return text
	return [
		...text,
		...turn.attachments.map((attachment) => show(attachment, files?.get(attachment.blob), traits, accepted)),
	]
}

/** All texts of a message, joined. */
export function textIn(shown: readonly Shown[]): string {
	return shown.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
}

export function dataUrl({ media_type, base64 }: Exclude<Shown, { kind: 'text' }>): string {
	return `data:${media_type};base64,${base64}`
}

/** The blobs of that type that the request contains as bytes, newest first, without duplicates. */
export function shownBlobs({ turns, files }: ModelRequest, type: Attachment['type']): string[] {
	const all = turns.flatMap((turn) => (turn.role === 'assistant' ? [] : (turn.attachments ?? [])))
	const shown = all.filter((one) => one.type === type && files?.has(one.blob) && !isTextType(one.media_type))
	return [...new Set(shown.map(({ blob }) => blob).toReversed())]
}

function show(attachment: Attachment, bytes: Uint8Array | undefined, traits: Traits, accepted: AcceptedMedia): Shown {
	const { type, media_type, size, name = `${type}.${media_type.split(/[/+]/)[1]}` } = attachment
	const words = (why?: string): Shown => ({ kind: 'text', text: lineOf(attachment, why) })
	if (!bytes) return words()
	if (isTextType(media_type)) return { kind: 'text', text: textOfFile(attachment, bytes) }
	if (traits.unreadable?.includes(attachment.blob)) return words('this model cannot read it')
	const base64 = (): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')
	if (type === 'image') {
		if (traits.images === false || !accepted.images.has(media_type)) return words('this model does not support it')
		if (size > (accepted.image_bytes ?? Infinity)) return words('too large to be shown to this model')
		return { kind: type, media_type, name, base64: base64() }
	}
	const known = type === 'file' ? accepted.files : accepted.audio
	if (traits[type === 'file' ? 'files' : 'audio'] === false || !known.has(media_type))
		return words('this model does not support it')
	return { kind: type, media_type, name, base64: base64() }
}

function textOfFile(attachment: Attachment, bytes: Uint8Array): string {
	const text = withoutOwnTags(decodeText(bytes))
	const about = aboutAttachment(attachment)
	if (text.length <= TEXT_LIMIT) return `[${about}; its text:]\n${text}\n[end of the file]`
	const rest = text.length - TEXT_LIMIT
	return `[${about}; the beginning of its text:]\n${text.slice(0, TEXT_LIMIT).toWellFormed()}\n[… ${rest} more characters are omitted]`
}
