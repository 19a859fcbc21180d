/** The width of a text in columns of a monospaced font. */
export function columnsOf(text: string): number {
	let width = 0
	for (const character of text) {
		if ((character.codePointAt(0) ?? 0) < 0x300) width++
		else if (/[\p{M}\p{Cf}]/u.test(character)) continue
		else width += wide.test(character) ? 2 : 1
	}
	return width
}

const wide =
	/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3001-\u303e\uff01-\uff60\uffe0-\uffe6]/u
