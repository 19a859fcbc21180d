/** Checks whether a tree can be released, and determines the version. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { breakingTitles, leastStep } from '../compatibility/accepted.ts'
import { Refused } from './refused.ts'
import { git } from './run.ts'

const steps = ['patch', 'minor', 'major'] as const
export type Step = (typeof steps)[number]

export function isStep(word: string): word is Step {
	return (steps as readonly string[]).includes(word)
}

/** The file in which `npm test` records the tree that passed. */
export function passedFile(root: string): string {
	return resolve(root, git(root, 'rev-parse', '--git-path', 'svc-tests-passed'))
}

/** The next version. Throws `Refused` if the tree cannot be released. */
export function versionToRelease(root: string, step: Step): string {
	const changed = git(root, 'status', '--porcelain')
	if (changed !== '') throw new Refused(`these files are changed or new; commit or remove them:\n${changed}`)
	const { version: last } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
	const next = nextVersion(last, step)
	if (git(root, 'tag', '--list', `v${next}`) !== '') throw new Refused(`there is a tag v${next} already`)
	const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
	if (!/^- /m.test(unreleased(changelog)))
		throw new Refused('the section [Unreleased] of CHANGELOG.md has no entry; add the changes')
	const least = leastStep(last, breakingTitles(changelog))
	if (steps.indexOf(step) < steps.indexOf(least))
		throw new Refused(
			`CHANGELOG.md has breaking changes, so after ${last} this is at least a ${least} release: npm run release -- ${least}`,
		)
	const since = /formatSince = '([^']+)'/.exec(readFileSync(join(root, 'core/store/format.ts'), 'utf8'))?.[1] ?? ''
	if (rank(since) > rank(next))
		throw new Refused(
			`according to core/store/format.ts ${since} is the first version that reads the format, and this is ${next}; correct formatSince`,
		)
	const passed = passedFile(root)
	if (!existsSync(passed) || readFileSync(passed, 'utf8') !== git(root, 'rev-parse', 'HEAD^{tree}'))
		throw new Refused('npm test has not passed for this commit; run it')
	return next
}

/** Throws `Refused` unless the version is three numbers. */
export function nextVersion(version: string, step: Step): string {
	const numbers = /^(\d+)\.(\d+)\.(\d+)$/.exec(version)?.slice(1).map(Number)
	if (!numbers) throw new Refused(`package.json has the version "${version}"; write MAJOR.MINOR.PATCH`)
	const [major = 0, minor = 0, patch = 0] = numbers
	if (step === 'major') return `${major + 1}.0.0`
	return step === 'minor' ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`
}

function unreleased(changelog: string): string {
	return `\n${changelog}`.split('\n## ').find((one) => one.startsWith('[Unreleased]')) ?? ''
}

function rank(version: string): number {
	return version.split('.').reduce((sum, part) => sum * 1e4 + Number(part), 0)
}
