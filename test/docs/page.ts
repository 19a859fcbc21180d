/** A page of documentation as its readers follow it: its commands and the files that it tells them to write, in order. */
import { readFileSync } from 'node:fs'

export interface Block {
	/** Of the fence that opens it, from 1. */
	line: number
	language: string
	/** Words of the info string such as `file=path`. */
	said: Readonly<Record<string, string>>
	text: string
}

export type Step =
	/** `types`: what a person types where the command asks. `answers`: what they answer to "are you sure?". */
	| { kind: 'command'; line: number; text: string; types?: string; answers?: string }
	/** A block that the page tells to put into a file: its info string says `file=…`. */
	| { kind: 'file'; line: number; path: string; text: string }
	/** A command that a test cannot run; `why` says what it would need: its info string says `needs=…`. */
	| { kind: 'elsewhere'; line: number; why: string; text: string }

export const shells = new Set(['sh', 'bash', 'shell', 'console', 'zsh'])

/** Throws where a fence is not closed. */
export function blocksOf(file: string | URL): Block[] {
	const lines = readFileSync(file, 'utf8').split('\n')
	const blocks: Block[] = []
	for (let at = 0; at < lines.length; at++) {
		const [, indent = '', fence, info = ''] = /^(\s*)(`{3,})(.*)$/.exec(lines[at] as string) ?? []
		if (fence === undefined) continue
		const end = lines.findIndex((line, n) => n > at && line.trim() === fence)
		if (end < 0) throw new Error(`${String(file)}:${at + 1}: the fence is not closed`)
		const text = lines
			.slice(at + 1, end)
			.map((line) => line.slice(indent.length))
			.join('\n')
		const [language = '', ...words] = info.trim().split(/\s+/)
		blocks.push({ line: at + 1, language, said: Object.fromEntries(words.map((word) => word.split('=', 2))), text })
		at = end
	}
	return blocks
}

export function stepsOf(file: string | URL): Step[] {
	return blocksOf(file).flatMap(({ line, language, said, text }): Step[] => {
		if (said.file !== undefined) return [{ kind: 'file', line, path: said.file, text: `${text}\n` }]
		if (said.needs !== undefined) return [{ kind: 'elsewhere', line, why: said.needs, text }]
		if (!shells.has(language)) return []
		const { types, answers } = said
		return [
			{ kind: 'command', line, text, ...(types !== undefined && { types }), ...(answers !== undefined && { answers }) },
		]
	})
}
