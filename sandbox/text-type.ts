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
