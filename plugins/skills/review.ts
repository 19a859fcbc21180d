/** Everything that an approval is decided on. */
import { createTwoFilesPatch } from 'diff'
import { isFault, messageOf } from '../../core/errors.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { Finding, SkillReview } from './contract.ts'
import { readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { visible } from './invisible.ts'
import { digestOf } from './library.ts'
import { scan } from './scan.ts'

type Read = Pick<
	SkillReview,
	| 'runtime'
	| 'parameters'
	| 'permissions'
	| 'metadata'
	| 'warnings'
	| 'findings'
	| 'diff'
	| 'program'
	| 'program_line'
	| 'markdown'
>

/** Both are slow for a long document, and any caller with read access may repeat them. By digest. */
const scans = new BoundedMap<string, Finding[]>(64)
const diffs = new BoundedMap<string, string>(32)

/** Limits of a diff: milliseconds, and differing lines. */
const DIFF_MS = 250
const DIFF_EDITS = 4_000
const DIFF_LIMIT = 256 * 1024

/** `before`: the active revision's text. `primitives`: the names of the current ones. */
export async function reviewOf(
	text: string,
	before: string | undefined,
	primitives: ReadonlySet<string>,
): Promise<Read> {
	const diff =
		before === undefined ? null : memo(diffs, `${digestOf(before)} ${digestOf(text)}`, () => diffOf(before, text))
	let document: SkillDocument
	try {
		document = await readDocument(text)
	} catch (error) {
		if (!isFault(error, 'skill_invalid')) throw error
		return { ...unreadable(messageOf(error)), diff, markdown: text }
	}
	const { parameters, permissions, metadata, program, warnings } = document
	return {
		runtime: program ? 'javascript' : null,
		parameters,
		permissions,
		metadata,
		warnings: [...warnings, ...warningsAbout(document, primitives)],
		findings: memo(scans, digestOf(text), () => scan(text, document)),
		diff,
		program: program?.code ?? null,
		program_line: program?.line ?? null,
		markdown: text,
	}
}

function memo<V>(known: BoundedMap<string, V>, key: string, make: () => V): V {
	const value = known.get(key) ?? make()
	known.set(key, value)
	return value
}

/** A document that was changed in the store, or installed by an earlier version with other rules. */
function unreadable(message: string): Omit<Read, 'diff' | 'markdown'> {
	const finding: Finding = { rule: 'unreadable', severity: 'high', line: 1, excerpt: '', message }
	return {
		runtime: null,
		parameters: [],
		permissions: { primitives: [], hosts: [], secrets: [] },
		metadata: {},
		warnings: [],
		findings: [finding],
		program: null,
		program_line: null,
	}
}

function warningsAbout({ name, permissions }: SkillDocument, primitives: ReadonlySet<string>): string[] {
	const warnings = permissions.primitives
		.filter((primitive) => !primitives.has(primitive))
		.map((primitive) => `It declares the primitive ${primitive}, which does not exist at the moment.`)
	if (primitives.has(name)) warnings.push(`Its name is that of the primitive ${name}, which takes precedence.`)
	return warnings
}

/** Invisible characters are escaped, as everywhere but in the document itself. */
function diffOf(before: string, after: string): string {
	const options = { context: 3, timeout: DIFF_MS, maxEditLength: DIFF_EDITS }
	const patch = createTwoFilesPatch('active', 'quarantined', shown(before), shown(after), '', '', options)
	if (patch === undefined) return 'The two revisions differ too much to show; compare the complete documents.'
	return patch.length <= DIFF_LIMIT ? patch : `${patch.slice(0, DIFF_LIMIT)}\n… cut off`
}

function shown(text: string): string {
	return text
		.split('\n')
		.map((line) => visible(line.replace(/\r$/, '')))
		.join('\n')
}
