/** Finds characters that a reader does not see, or that change how text looks. */

/** Tag characters, which can form a message that only a model reads. */
const TAGS = /[\u{E0000}-\u{E0FFF}]/u
/** Characters that change the display order of text. */
const BIDI = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/
/** All invisible characters, including controls (\p{C}) except tab and line feed. */
const INVISIBLE =
	/(?![\t\n])[\p{C}\p{Default_Ignorable_Code_Point}\u{E0000}-\u{E0FFF}\u2028\u2029\u00A0\u2000-\u200A\u2800]/u

export type Invisible = 'tags' | 'bidi' | 'other'

/** The distinct invisible characters of a text as `U+200B`, and the worst kind among them; undefined if there are none. */
export function invisibleIn(text: string): { kind: Invisible; codes: string[] } | undefined {
	if (!INVISIBLE.test(text)) return undefined
	const codes = new Set<string>()
	let kind: Invisible = 'other'
	const characters = Array.from(text)
	for (const [at, character] of characters.entries()) {
		if (!INVISIBLE.test(character) || isOfEmoji(characters, at)) continue
		if (TAGS.test(character)) kind = 'tags'
		else if (BIDI.test(character) && kind === 'other') kind = 'bidi'
		codes.add(`U+${codeOf(character).toString(16).toUpperCase().padStart(4, '0')}`)
	}
	return codes.size > 0 ? { kind, codes: [...codes] } : undefined
}

/** The text with invisible characters written as `\u{200b}`; with `lines`, also tabs and line ends. */
export function visible(text: string, lines = false): string {
	if (!lines && !INVISIBLE.test(text)) return text
	let shown = ''
	for (const character of text) {
		const hidden = INVISIBLE.test(character) || (lines && /[\r\n\t]/.test(character))
		shown += hidden ? `\\u{${codeOf(character).toString(16)}}` : character
	}
	return shown
}

/** The text as a reader perceives it: without invisible characters, and with look-alike forms normalized. Line ends stay. */
export function plainText(text: string): string {
	let plain = ''
	for (const part of text.split('\n')) plain += `${INVISIBLE.test(part) ? strip(part) : part.normalize('NFKC')}\n`
	return plain
}

function strip(line: string): string {
	let plain = ''
	for (const character of line) {
		if (!INVISIBLE.test(character)) plain += character
		else if (/\s/.test(character)) plain += ' '
	}
	return plain.normalize('NFKC')
}

/** An emoji's own variation selector or joiner is harmless. */
function isOfEmoji(characters: readonly string[], at: number): boolean {
	const before = characters[at - 1] ?? ''
	if (characters[at] === '\uFE0F') return /[\p{Extended_Pictographic}0-9#*]/u.test(before)
	return (
		characters[at] === '\u200D' &&
		/[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]/u.test(before) &&
		/\p{Extended_Pictographic}/u.test(characters[at + 1] ?? '')
	)
}

function codeOf(character: string): number {
	return character.codePointAt(0) ?? 0
}
