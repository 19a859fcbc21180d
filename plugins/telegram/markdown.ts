/** Makes a model's Markdown safe for Telegram's Rich Markdown, which can do more than show text. */

/**
 * What any parser may treat as the end of a line. The result has only `\n`, so that every parser sees the lines that were
 * checked here.
 */
const LINE_END = /\r\n|[\n\v\f\r\x85\u2028\u2029]/

/**
 * Removes images and HTML outside of code. Telegram's servers fetch each image, so an attacker with text in a model's context
 * could make it leak secrets in an address; tags make buttons and maps. Images become links, `<` becomes text. In doubt, code
 * shows an extra backslash.
 */
export function safeMarkdown(text: string): string {
	const safe: string[] = []
	let paragraph: string[] = []
	let fence: string | undefined
	let inner: Inner
	let hasFormula = false
	/** After a place where parsers may disagree on what is code, nothing is treated as code. */
	let inDoubt = false
	const endParagraph = (): void => {
		safe.push(...safeParagraph(paragraph))
		paragraph = []
	}
	for (const line of text.split(LINE_END)) {
		// A formula that began earlier may end here; what follows is then not part of the fence.
		const endsFormula = hasFormula && line.includes('$$')
		const opened = fence === undefined ? FENCE.exec(line)?.[1] : undefined
		if (inDoubt) safe.push(safeText(line))
		else if (fence !== undefined) {
			const isEnd = closes(line, fence)
			safe.push(line)
			inDoubt = isEnd === undefined || endsFormula
			if (isEnd) fence = undefined
		} else if (opened !== undefined) {
			endParagraph()
			safe.push(line)
			fence = opened
			inDoubt = inner !== undefined || endsFormula
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

/** Only a fence at the very beginning of a line counts: finding the end of any other fence takes a complete parser. */
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/
/** Markdown does not treat other invisible characters as white space. */
const BLANK = /^[ \t]*$/
/** A tag at the beginning of a line begins a block of HTML, in which there are no fences. */
const LEADING_BREAK = /^([\s>*+\d.)-]*)<(?=br ?\/?>)/i

/** Undefined if parsers may disagree. */
function closes(line: string, fence: string): boolean | undefined {
	const shown = withoutBlanks(line)
	if (!shown.startsWith(fence) || /[^`~]/.test(shown)) return false
	const isPlain = shown === fence.charAt(0).repeat(shown.length) && /^ {0,3}[`~]+ *$/.test(line)
	return isPlain ? true : undefined
}

/** An indented fence, as in a list: open, or possibly open, in which case it stays open. */
type Inner = { indent: string; fence: string } | 'perhaps' | undefined

/** What is open after this line, which is outside of counted fences. */
function innerBehind(line: string, inner: Inner): Inner {
	if (inner === 'perhaps') return inner
	if (inner !== undefined) {
		const { indent, fence } = inner
		if (!line.startsWith(indent)) return BLANK.test(line) ? inner : 'perhaps'
		const isEnd = closes(line.slice(indent.length), fence)
		if (isEnd === false) return inner
		return isEnd && line.charAt(indent.length) === fence.charAt(0) ? undefined : 'perhaps'
	}
	const [, indent, fence] = /^([ \t]+)(`{3,}(?=[^`]*$)|~{3,})/.exec(line) ?? []
	if (indent !== undefined && fence !== undefined) return { indent, fence }
	return /~{3}|^[^`]*`{3,}[^`]*$/.test(withoutBlanks(line)) ? 'perhaps' : undefined
}

/** Other invisible characters, which some parsers remove first. */
function withoutBlanks(line: string): string {
	return line.replace(/[\s\p{C}]+/gu, '')
}

/** In a paragraph in which every code span ends in the line where it begins, code can be distinguished from text. */
function safeParagraph(lines: string[]): string[] {
	const parts = lines.map(codeAndOther)
	// A formula that begins outside of code may end within what looks like code.
	const hasDollar = (rest: 0 | 1): boolean =>
		parts.some((line) => line?.some((part, n) => n % 2 === rest && part.includes('$')))
	if (parts.includes(undefined) || (hasDollar(0) && hasDollar(1))) return lines.map(safeText)
	return parts.map((line) => (line ?? []).map((part, n) => (n % 2 === 1 ? part : safeText(part))).join(''))
}

/** Alternately text and code, beginning with text. Undefined if the line alone does not decide. */
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

/** The lookbehinds let a pattern begin only where a run of its character begins, so that a long run is scanned once. */
function safeText(text: string): string {
	return text
		.replace(/(?<!!)!+\[\]/g, '[image]')
		.replace(/(?<!!)!+\[/g, '[')
		.replace(/(?<!\\)(\\*)<(?!br ?\/?>)/gi, (all, slashes: string) =>
			slashes.length % 2 === 1 ? all : `${slashes}&lt;`,
		)
}
