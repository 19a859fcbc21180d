/** Descriptions of attachments, for models that do not accept them, and if there is no room. */
import type { Attachment } from '../../core/protocol.ts'
import { withoutOwnTags } from '../context/own-tags.ts'
import type { Turn } from '../models/provider.ts'

/** One line, such as `[image "photo.png", image/png, 12 KB]`; for a transcribed recording, its transcript. */
export function lineOf(attachment: Attachment, why?: string): string {
	const { transcript } = attachment
	const about = aboutAttachment(attachment)
	if (transcript === '') return `[${about}: no words were recognized]`
	if (typeof transcript === 'string') return `[${about}; in words:]\n${withoutOwnTags(transcript)}`
	const more = transcript === null ? 'it could not be transcribed' : why
	return more === undefined ? `[${about}]` : `[${about}: ${more}]`
}

export function aboutAttachment({ type, name, media_type, size, seconds }: Attachment): string {
	const what = type === 'audio' ? 'recording' : type
	const named = name === undefined ? what : `${what} ${JSON.stringify(name)}`
	return [named, media_type, ...(seconds === undefined ? [] : [`${seconds} s`]), sizeOf(size)].join(', ')
}

/** The same message with descriptions in place of its attachments. */
export function inWords(turn: Turn): Turn {
	if (turn.role === 'assistant' || !turn.attachments) return turn
	const { attachments, ...rest } = turn
	const texts = [turn.content, ...attachments.map((one) => lineOf(one))]
	return { ...rest, content: texts.filter((text) => text !== '').join('\n\n') }
}

function sizeOf(bytes: number): string {
	if (bytes < 1000) return `${bytes} bytes`
	return bytes < 1_000_000 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}
