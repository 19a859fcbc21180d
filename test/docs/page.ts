/** The steps of a documentation page, in order: its commands, and the files that readers write. */
import { readFileSync } from 'node:fs'

export interface Block {
	/** The line of its opening fence, from 1. */
	line: number
	language: string
	/** Attributes of the info string, such as `file=path`. */
	attributes: Readonly<Record<string, string>>
	text: string
}

export type Step =
	/** `types`: input at a prompt of the command. `answers`: the answer to a request for confirmation. */
	| { kind: 'command'; line: number; text: string; types?: string; answers?: string }
	/** A block that readers write to a file: its info string has `file=…`. */
	| { kind: 'file'; line: number; path: string; text: string }
	/** A command that a test cannot execute: its info string has `needs=…`, the requirement. */
	| { kind: 'elsewhere'; line: number; needs: string; text: string }

export const shells = new Set(['sh', 'bash', 'shell', 'console', 'zsh'])

/** Throws if a fence is not closed. */
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
		blocks.push({
			line: at + 1,
			language,
			attributes: Object.fromEntries(words.map((word) => word.split('=', 2))),
			text,
		})
		at = end
	}
	return blocks
}

export function stepsOf(file: string | URL): Step[] {
	return blocksOf(file).flatMap(({ line, language, attributes, text }): Step[] => {
		if (attributes.file !== undefined) return [{ kind: 'file', line, path: attributes.file, text: `${text}\n` }]
		if (attributes.needs !== undefined) return [{ kind: 'elsewhere', line, needs: attributes.needs, text }]
		if (!shells.has(language)) return []
		const { types, answers } = attributes
		return [
			{ kind: 'command', line, text, ...(types !== undefined && { types }), ...(answers !== undefined && { answers }) },
		]
	})
}
