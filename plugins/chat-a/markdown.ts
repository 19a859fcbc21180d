/** Markdown of a model's, made safe for Telegram's Rich Markdown, which can do more than show text. */

/**
 * Takes out images and HTML outside of code. Telegram's servers fetch each image, so that somebody who got words into a
 * model's context could have it send secrets away in an address; tags make buttons and maps. Images become links, `<`
 * becomes text.
 */
export function safeMarkdown(text: string): string {
	const lines = text.split('\n')
	const safe: string[] = []
	let paragraph: string[] = []
	let fence: string | undefined
	const endParagraph = (): void => {
		safe.push(...safeParagraph(paragraph))
		paragraph = []
	}
	for (const line of lines) {
		if (fence !== undefined) {
			safe.push(line)
			if (closes(line, fence)) fence = undefined
			continue
		}
		fence = /^(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1]
		if (fence !== undefined || line.trim() === '') {
			endParagraph()
			safe.push(line)
		} else paragraph.push(line)
	}
	endParagraph()
	return safe.join('\n')
}

/**
 * Only a fence at the very beginning of a line counts: one that is indented ends together with the list around it, and what
 * follows would be taken for code here, but not there. Where in doubt, code shows a sign too many.
 */
function closes(line: string, fence: string): boolean {
	const end = line.trim()
	return end.length >= fence.length && end === fence.charAt(0).repeat(end.length)
}

/** Between blank lines, where every piece of code ends in the line it begins in, each can be told from what is not code. */
function safeParagraph(lines: string[]): string[] {
	const parts = lines.map(codeAndOther)
	if (parts.some((line) => line === undefined)) return lines.map(safeText)
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
