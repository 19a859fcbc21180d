/** Checks that the changelog announces each break since the last release. */

export interface Accepted {
	/** By the bold title of an entry in "Breaking changes" of CHANGELOG.md: the breaks that it announces. */
	listed: Record<string, string[]>
	/** By the reason why nobody has to change anything: differences that only look like a break. */
	harmless: Record<string, string[]>
}

/** Lists the problems; empty if every break is accepted, and everything accepted is a break. */
export function verdict(breaks: readonly string[], { listed, harmless }: Accepted, changelog: string): string[] {
	const titles = breakingTitles(changelog)
	const known = [...Object.values(listed), ...Object.values(harmless)].flat()
	return [
		...breaks
			.filter((one) => !known.includes(one))
			.map(
				(one) =>
					`${one}\n  Undo it, or announce it under "Breaking changes" of CHANGELOG.md and add it to accepted.json under that title.`,
			),
		...known
			.filter((one) => !breaks.includes(one))
			.map((one) => `accepted.json lists a change that is not a break: ${one}`),
		...Object.keys(listed)
			.filter((title) => !titles.includes(title))
			.map((title) => `"Breaking changes" of CHANGELOG.md has no entry **${title}.**`),
	]
}

/** The bold titles of the breaking changes that are not released yet. */
export function breakingTitles(changelog: string): string[] {
	const unreleased = `\n${changelog}`.split('\n## ').find((one) => one.startsWith('[Unreleased]')) ?? ''
	const section = unreleased.split('\n### ').find((one) => one.startsWith('Breaking changes')) ?? ''
	return [...section.matchAll(/^- \*\*(.+?)\.\*\*/gm)].map(([, title = '']) => title)
}

/** The smallest part of the version that must be raised: before 1.0, a minor version may break; later, only a major one. */
export function leastStep(version: string, titles: readonly string[]): 'major' | 'minor' | 'patch' {
	if (titles.length === 0) return 'patch'
	return version.startsWith('0.') ? 'minor' : 'major'
}
