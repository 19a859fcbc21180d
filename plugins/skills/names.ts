import { hash } from 'node:crypto'

/** The limit of 64 characters in the APIs of models, without `skill_` and the longest suffix. */
const SLUG_LIMIT = 48

/**
 * The name of the tool for a skill: `skill_weather-report` for "Weather report". If another skill already has this tool name, or no
 * character of the name is valid in it, a hash of the name is added.
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
	// Names with the same beginning of the hash can be found within a second. So the next part of the hash is used if that is taken.
	const withPiece = (n: number): string => `skill_${slug === '' ? '' : `${slug}_`}${digest.slice(8 * n, 8 * n + 8)}`
	let piece = 0
	while (piece < 7 && isTaken(withPiece(piece))) piece++
	return withPiece(piece)
}
