/** Makes a model's Markdown safe for Telegram's Rich Markdown, which can do more than show text. */

/** What any parser treats as a line end. The result has only `\n`, so that all parsers see the same lines. */
const LINE_END = /\r\n|[\n\v\f\r\x85\u2028\u2029]/

/**
 * Removes images and HTML outside of code: images become links, `<` becomes text. Telegram's servers fetch each image, so a prompt
 * injection could leak secrets in an address; tags create buttons and maps. Where it is unclear what is code, everything is treated
 * as text, so code may show `&lt;`.
 */
export function safeMarkdown(text: string): string {
	const safe: string[] = []
	let paragraph: string[] = []
	let fence: string | undefined
	let inner: Inner
	let hasFormula = false
	/** Set after a position where parsers may disagree on what is code. From there on, nothing is treated as code. */
	let isAmbiguous = false
	const endParagraph = (): void => {
		safe.push(...safeParagraph(paragraph))
		paragraph = []
	}
	for (const line of text.split(LINE_END)) {
		// An earlier formula may end here, and what follows is then not part of the fence.
		const endsFormula = hasFormula && line.includes('$$')
		const opened = fence === undefined ? FENCE.exec(line)?.[1] : undefined
		if (isAmbiguous) safe.push(safeText(line))
		else if (fence !== undefined) {
			const isEnd = closes(line, fence)
			safe.push(line)
			isAmbiguous = isEnd === undefined || endsFormula
			if (isEnd) fence = undefined
		} else if (opened !== undefined) {
			endParagraph()
			safe.push(line)
			fence = opened
			isAmbiguous = inner !== undefined || endsFormula
		} else {
			inner = innerBehind(line, inner)
			hasFormula ||= line.includes('$$')
			if (BLANK.test(line)) {
				endParagraph()
				safe.push(line)
			} else paragraph.push(line.replace(LEADING_BREAK, '$1&lt;'))
		}
	}
	endParagraph()
	return safe.join('\n')
}

/** Only a fence at the very beginning of a line counts, since finding the end of an indented fence requires a complete parser. */
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/
/** Markdown does not treat other invisible characters as white space. */
const BLANK = /^[ \t]*$/
/** A tag at the beginning of a line begins a block of HTML, in which there are no fences. */
const LEADING_BREAK = /^([\s>*+\d.)-]*)<(?=br ?\/?>)/i

/** Whether the line closes the fence; undefined if parsers may disagree. */
function closes(line: string, fence: string): boolean | undefined {
	const shown = withoutBlanks(line)
	if (!shown.startsWith(fence) || /[^`~]/.test(shown)) return false
	const isPlain = shown === fence.charAt(0).repeat(shown.length) && /^ {0,3}[`~]+ *$/.test(line)
	return isPlain ? true : undefined
}

/** An indented fence, as in a list. `unclear` (possibly open) never changes back. */
type Inner = { indent: string; fence: string } | 'unclear' | undefined

/** The indented fence that is open after this line, which is outside of unindented fences. */
function innerBehind(line: string, inner: Inner): Inner {
	if (inner === 'unclear') return inner
	if (inner !== undefined) {
		const { indent, fence } = inner
		if (!line.startsWith(indent)) return BLANK.test(line) ? inner : 'unclear'
		const isEnd = closes(line.slice(indent.length), fence)
		if (isEnd === false) return inner
		return isEnd && line.charAt(indent.length) === fence.charAt(0) ? undefined : 'unclear'
	}
	const [, indent, fence] = /^([ \t]+)(`{3,}(?=[^`]*$)|~{3,})/.exec(line) ?? []
	if (indent !== undefined && fence !== undefined) return { indent, fence }
	return /~{3}|^[^`]*`{3,}[^`]*$/.test(withoutBlanks(line)) ? 'unclear' : undefined
}

/** Removes all white space and invisible characters, as some parsers do first. */
function withoutBlanks(line: string): string {
	return line.replace(/[\s\p{C}]+/gu, '')
}

/** Code is distinguished from text only if every code span of the paragraph ends in the line where it begins. */
function safeParagraph(lines: string[]): string[] {
	const parts = lines.map(codeAndOther)
	// A formula that begins outside of code may end within what looks like code.
	const hasDollar = (rest: 0 | 1): boolean =>
		parts.some((line) => line?.some((part, n) => n % 2 === rest && part.includes('$')))
	if (parts.includes(undefined) || (hasDollar(0) && hasDollar(1))) return lines.map(safeText)
	return parts.map((line) => (line ?? []).map((part, n) => (n % 2 === 1 ? part : safeText(part))).join(''))
}

/** Alternating text and code, starting with text. Undefined if the line alone is ambiguous. */
function codeAndOther(line: string): string[] | undefined {
	if (line.includes('\\`')) return undefined
	const runs = [...line.matchAll(/`+/g)]
	const parts: string[] = []
	let from = 0
	for (let at = 0; at < runs.length; at++) {
		const begin = runs[at]?.index ?? 0
		const ticks = runs[at]?.[0]
		do at++
		while (at < runs.length && runs[at]?.[0] !== ticks)
		const end = runs[at]
		if (!end) return undefined
		const code = line.slice(begin, end.index + end[0].length)
		if (code.includes('|')) return undefined // in a table it may be two cells
		parts.push(line.slice(from, begin), code)
		from = begin + code.length
	}
	return [...parts, line.slice(from)]
}

/** The lookbehinds let a match start only at the start of a run of its character, so that a long run is scanned only once. */
function safeText(text: string): string {
	return text
		.replace(/(?<!!)!+\[\]/g, '[image]')
		.replace(/(?<!!)!+\[/g, '[')
		.replace(/(?<!\\)(\\*)<(?!br ?\/?>)/gi, (all, slashes: string) =>
			slashes.length % 2 === 1 ? all : `${slashes}&lt;`,
		)
}
