const TEXTS = /^(text\/|image\/svg\+xml$|application\/(json|xml|(x-)?yaml|toml|sql|javascript|typescript|x-sh)$)/

/** Whether bytes of that type are text (see `decodeText`), which every model can read. */
export function isTextType(media_type: string): boolean {
	return TEXTS.test(media_type)
}

/** The text in UTF-8, or in UTF-16 if it begins with a byte order mark, as Windows writes it. Without that mark. Throws only if `fatal`. */
export function decodeText(bytes: Uint8Array, { fatal = false, stream = false } = {}): string {
	const [first, second] = bytes
	const encoding =
		first === 0xff && second === 0xfe ? 'utf-16le' : first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
	return new TextDecoder(encoding, { fatal }).decode(bytes, { stream })
}

/** How many bytes at the beginning decide whether a file is text. */
export const HEAD_BYTES = 4096
/** Control characters, except those of text files. */
// oxlint-disable-next-line no-control-regex -- finds them
const CONTROLS = /[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]/

/** The text at the beginning of a file, up to `HEAD_BYTES`. Undefined for binary data. The rest of a text may have errors. */
export function textAtBeginning(bytes: Uint8Array): string | undefined {
	try {
		// The last character may be incomplete.
		const text = decodeText(bytes.subarray(0, HEAD_BYTES), { fatal: true, stream: true })
		return CONTROLS.test(text) ? undefined : text
	} catch {
		return undefined
	}
}
