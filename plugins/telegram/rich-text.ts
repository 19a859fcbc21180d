import type { RichMessage } from 'grammy/types'

const DEPTH = 64

/** The text of a rich message, such as a forwarded one; its blocks become lines. */
export function textOf({ blocks }: RichMessage): string {
	return blocks
		.map((block) => words(block, DEPTH))
		.filter((line) => line !== '')
		.join('\n')
}

/** All kinds of rich text have their text under `text`; lists, tables and quotations contain further ones. */
function words(node: unknown, depth: number): string {
	if (typeof node === 'string') return node
	if (depth === 0 || typeof node !== 'object' || node === null) return ''
	if (Array.isArray(node)) return node.map((part) => words(part, depth - 1)).join('')
	const parts = Object.entries(node).filter(([key, part]) => key === 'text' || typeof part === 'object')
	return parts
		.map(([, part]) => words(part, depth - 1))
		.join(' ')
		.trim()
}
