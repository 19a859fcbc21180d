import { hash } from 'node:crypto'

/** Bytes of a model's limit (64) without `skill_` and the longest suffix. */
const SLUG_LIMIT = 48

/**
 * The tool's name for a skill's: `skill_weather-report` for "Weather report". If another name already has it, or
 * no character of the name is valid in it, a hash of the name distinguishes them.
 */
export function toolNameFor(name: string, isTaken: (tool: string) => boolean): string {
	const slug = name
		.normalize('NFKD')
		.toLowerCase()
		.replaceAll(/\p{M}/gu, '')
		.replaceAll(/[^a-z0-9]+/g, '-')
		.replaceAll(/^-|-$/g, '')
		.slice(0, SLUG_LIMIT)
		.replace(/-$/, '')
	const tool = `skill_${slug}`
	if (slug !== '' && !isTaken(tool)) return tool
	const digest = hash('sha256', name)
	// Names whose hashes begin alike can be found within a second: then the next part of the hash distinguishes them.
	const withPiece = (n: number): string => `skill_${slug === '' ? '' : `${slug}_`}${digest.slice(8 * n, 8 * n + 8)}`
	let piece = 0
	while (piece < 7 && isTaken(withPiece(piece))) piece++
	return withPiece(piece)
}
