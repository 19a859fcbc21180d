import { isTextType } from '../text-type.ts'
import type { Attachment } from '../../core/protocol.ts'
import { tokensIn } from '../context/estimate.ts'
import { TEXT_LIMIT } from './shown.ts'

/** Of an image of the size to which providers scale large ones down. */
const IMAGE = 1_600
/** A page of a document has some 50 KB, and takes about 2,000 tokens. */
const BYTES_PER_TOKEN = 25
const DOCUMENT = 100_000
const LINE = 40
/** Of a second of sound, and of a byte where nobody tells its length. */
const SECOND = 32
const SOUND_BYTES_PER_TOKEN = 80

/** Estimated tokens of an attachment in a request: rather too many than too few. */
export function tokensOfAttachment({ type, media_type, size, seconds, transcript }: Attachment): number {
	if (type === 'image') return IMAGE
	if (type === 'audio')
		return typeof transcript === 'string'
			? tokensIn(transcript) + LINE
			: Math.ceil(seconds === undefined ? size / SOUND_BYTES_PER_TOKEN : seconds * SECOND) + LINE
	if (isTextType(media_type)) return Math.ceil(Math.min(size, TEXT_LIMIT) / 3) + LINE
	if (media_type !== 'application/pdf') return LINE
	return Math.min(DOCUMENT, Math.max(IMAGE, Math.ceil(size / BYTES_PER_TOKEN)))
}
