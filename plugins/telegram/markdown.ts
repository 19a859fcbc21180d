/** Markdown of a model's, made safe for Telegram's Rich Markdown, which can do more than show text. */

/**
 * What one parser or another takes for the end of a line. What comes out has `\n` only, so that nobody sees other lines in
 * it than were looked at here.
 */
const LINE_END = /\r\n|[\n\v\f\r\x85\u2028\u2029]/

/**
 * Takes out images and HTML outside of code. Telegram's servers fetch each image, so that somebody who got words into a
 * model's context could have it send secrets away in an address; tags make buttons and maps. Images become links, `<`
 * becomes text. Where in doubt, code shows a sign too many.
 */
export function safeMarkdown(text: string): string {
	const safe: string[] = []
	let paragraph: string[] = []
	let fence: string | undefined
	let inner: Inner
	let hasFormula = false
	/** From a place on where parsers may differ on what is code, nothing is taken for code. */
	let inDoubt = false
	const endParagraph = (): void => {
		safe.push(...safeParagraph(paragraph))
		paragraph = []
	}
	for (const line of text.split(LINE_END)) {
		// A formula that began before may end here, and all behind it is none of the fence's.
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

/** Only a fence at the very beginning of a line counts as one: of others it takes a whole parser to know where they end. */
const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})/
/** Other signs that do not show are no blanks to Markdown. */
const BLANK = /^[ \t]*$/
/** A tag at the beginning of a line begins a block of HTML, in which there are no fences. */
const LEADING_BREAK = /^([\s>*+\d.)-]*)<(?=br ?\/?>)/i

/** Undefined where parsers may differ. */
function closes(line: string, fence: string): boolean | undefined {
	const shown = withoutBlanks(line)
	if (!shown.startsWith(fence) || /[^`~]/.test(shown)) return false
	const isPlain = shown === fence.charAt(0).repeat(shown.length) && /^ {0,3}[`~]+ *$/.test(line)
	return isPlain ? true : undefined
}

/** A fence that is indented, as in a list: open, or perhaps open, which it is for good then. */
type Inner = { indent: string; fence: string } | 'perhaps' | undefined

/** What is open behind this line, which is not in a fence that counts. */
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

/** Nor any other sign that does not show, which some take out before they look. */
function withoutBlanks(line: string): string {
	return line.replace(/[\s\p{C}]+/gu, '')
}

/** Between blank lines, where every piece of code ends in the line it begins in, each can be told from what is not code. */
function safeParagraph(lines: string[]): string[] {
	const parts = lines.map(codeAndOther)
	// A formula that begins outside of code may end within what looks like code.
	const hasDollar = (rest: 0 | 1): boolean =>
		parts.some((line) => line?.some((part, n) => n % 2 === rest && part.includes('$')))
	if (parts.includes(undefined) || (hasDollar(0) && hasDollar(1))) return lines.map(safeText)
	return parts.map((line) => (line ?? []).map((part, n) => (n % 2 === 1 ? part : safeText(part))).join(''))
}

/** Turns about, beginning with what is not code. Undefined where the line alone does not tell. */
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

/** The looks behind let each pattern begin only where a run of its sign does, so that a long run is gone through once. */
function safeText(text: string): string {
	return text
		.replace(/(?<!!)!+\[\]/g, '[image]')
		.replace(/(?<!!)!+\[/g, '[')
		.replace(/(?<!\\)(\\*)<(?!br ?\/?>)/gi, (all, slashes: string) =>
			slashes.length % 2 === 1 ? all : `${slashes}&lt;`,
		)
}
