/** The diff of a revision against the active one, file by file. */
import { createTwoFilesPatch } from 'diff'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { textIn } from './file-kind.ts'
import type { SkillFile } from './folder/contract.ts'
import { digestOfListing, listingOf } from './folder/digest.ts'
import { visible } from './invisible.ts'

/** Limits: milliseconds for all files, differing lines of one file, and characters of the diff. */
const DIFF_MS = 500
const DIFF_EDITS = 4_000
const DIFF_LIMIT = 256 * 1024

const diffs = new BoundedMap<string, string>(32)

/** A unified diff with invisible characters escaped. A file that is not text has one line with its sizes. */
export function diffOf(before: readonly SkillFile[], after: readonly SkillFile[]): string {
	const key = [before, after].map((files) => digestOfListing(files.map(listingOf))).join(' ')
	const known = diffs.get(key) ?? makeDiff(before, after)
	diffs.set(key, known)
	return known
}

function makeDiff(before: readonly SkillFile[], after: readonly SkillFile[]): string {
	const until = performance.now() + DIFF_MS
	const paths = [...new Set([...after, ...before].map((file) => file.path))]
	const find = (files: readonly SkillFile[], path: string): Uint8Array | undefined =>
		files.find((file) => file.path === path)?.bytes
	let all = ''
	for (const path of paths) {
		const [old, next] = [find(before, path), find(after, path)]
		if (old && next && Buffer.compare(old, next) === 0) continue
		all += patchOf(path, old, next, until)
		if (all.length > DIFF_LIMIT) return `${all.slice(0, DIFF_LIMIT).toWellFormed()}\n… cut off`
	}
	return all
}

function patchOf(path: string, old: Uint8Array | undefined, next: Uint8Array | undefined, until: number): string {
	const [from, to] = [old, next].map((bytes) => (bytes === undefined ? '' : textIn(bytes)))
	if (from === undefined || to === undefined)
		return `Binary file ${path}: ${old ? `${old.length} bytes` : 'absent'} → ${next ? `${next.length} bytes` : 'absent'}\n`
	const left = until - performance.now()
	const options = { context: 3, timeout: Math.max(1, left), maxEditLength: DIFF_EDITS }
	const names = [old ? `active/${path}` : '/dev/null', next ? `quarantined/${path}` : '/dev/null'] as const
	const patch = left > 0 ? createTwoFilesPatch(...names, shown(from), shown(to), '', '', options) : undefined
	return patch ?? `The two revisions of ${path} differ too much to show; compare the complete files.\n`
}

function shown(text: string): string {
	return text
		.split('\n')
		.map((line) => visible(line.replace(/\r$/, '')))
		.join('\n')
}
