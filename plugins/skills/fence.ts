/** The first fenced block of a Markdown text that holds a program. */
import type { Program } from './program.ts'

export interface FencedProgram extends Program {
	/** The line of the text, 1 is the first, on which the code begins. */
	line: number
}

const languages: Record<string, Program['language']> = {
	js: 'javascript',
	javascript: 'javascript',
	mjs: 'javascript',
	ts: 'typescript',
	typescript: 'typescript',
	mts: 'typescript',
}

/** As CommonMark has fences: three or more of ` or ~, indented at most three spaces, closed by at least as many. */
export function findProgram(markdown: string): FencedProgram | undefined {
	const lines = markdown.split('\n')
	for (let at = 0; at < lines.length; at++) {
		const open = /^( {0,3})(`{3,}|~{3,})[ \t]*([^\s`{]*)/.exec(lines[at] ?? '')
		if (!open) continue
		const [, indent = '', fence = '', word = ''] = open
		let end = at + 1
		while (end < lines.length && !closes(lines[end] ?? '', fence)) end++
		const language = Object.hasOwn(languages, word.toLowerCase()) ? languages[word.toLowerCase()] : undefined
		if (language) {
			const code = lines.slice(at + 1, end).map((line) => unindent(line, indent.length))
			return { code: `${code.join('\n')}\n`, language, line: at + 2 }
		}
		at = end
	}
	return undefined
}

function closes(line: string, fence: string): boolean {
	const text = line.trim()
	return text.length >= fence.length && /^ {0,3}\S/.test(line) && text === (fence[0] ?? '').repeat(text.length)
}

function unindent(line: string, width: number): string {
	let at = 0
	while (at < width && line[at] === ' ') at++
	return line.slice(at)
}
