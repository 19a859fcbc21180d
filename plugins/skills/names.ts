import { createHash } from 'node:crypto'

/** Bytes of a model's limit (64) without `skill_` and the longest suffix. */
const SLUG_LIMIT = 48

/**
 * The tool's name for a skill's: `skill_weather-report` for "Weather report". Where another name has it already, or where
 * nothing of the name can stand in one, a hash of the name tells them apart.
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
	const hash = createHash('sha256').update(name).digest('hex')
	return `skill_${slug === '' ? '' : `${slug}_`}${hash.slice(0, 8)}`
}
