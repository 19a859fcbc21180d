/** The width of a text in columns of a monospaced font. An emoji of several characters, such as a flag or a family, takes two. */
export function columnsOf(text: string): number {
	if (!mayJoin.test(text)) return sum(text)
	segmenter ??= new Intl.Segmenter()
	let width = 0
	for (const { segment } of segmenter.segment(text))
		width += isEmoji.test(segment) ? Math.min(2, sum(segment)) : sum(segment)
	return width
}

function sum(text: string): number {
	let width = 0
	for (const character of text) {
		if ((character.codePointAt(0) ?? 0) < 0x300) width++
		else if (/[\p{M}\p{Cf}]/u.test(character)) continue
		else width += wide.test(character) ? 2 : 1
	}
	return width
}

let segmenter: Intl.Segmenter | undefined

const wide =
	/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3001-\u303e\uff01-\uff60\uffe0-\uffe6]/u
/** A zero-width joiner, a half of a flag, or a skin tone. */
const mayJoin = /[\u200d\p{Regional_Indicator}\p{Emoji_Modifier}]/u
const isEmoji = /[\p{Extended_Pictographic}\p{Regional_Indicator}]/u
