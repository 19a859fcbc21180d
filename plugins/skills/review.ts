/** All that an approval is decided on. */
import { createTwoFilesPatch } from 'diff'
import { isFault, messageOf } from '../../core/errors.ts'
import type { Finding, SkillReview } from './contract.ts'
import { readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { visible } from './invisible.ts'
import { digestOf } from './library.ts'
import { Lru } from './lru.ts'
import { scan } from './scan.ts'

type Read = Pick<
	SkillReview,
	'runtime' | 'parameters' | 'permissions' | 'metadata' | 'warnings' | 'findings' | 'diff' | 'markdown'
>

/** Both take a while for a long document, and anybody who may read may ask again and again. By digest. */
const scans = new Lru<Finding[]>(64)
const diffs = new Lru<string>(32)

/** Milliseconds that a diff may take, and lines that it may differ by. */
const DIFF_MS = 250
const DIFF_EDITS = 4_000
const DIFF_LIMIT = 256 * 1024

/** `before`: the active revision's text. `primitives`: the names of those that there are now. */
export function reviewOf(text: string, before: string | undefined, primitives: ReadonlySet<string>): Read {
	const diff =
		before === undefined ? null : memo(diffs, `${digestOf(before)} ${digestOf(text)}`, () => diffOf(before, text))
	let document: SkillDocument
	try {
		document = readDocument(text)
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
		markdown: text,
	}
}

function memo<V>(known: Lru<V>, key: string, make: () => V): V {
	const value = known.get(key) ?? make()
	known.set(key, value)
	return value
}

/** What was changed in the store may be anything. */
function unreadable(message: string): Omit<Read, 'diff' | 'markdown'> {
	const finding: Finding = { rule: 'unreadable', severity: 'high', line: 1, excerpt: '', message }
	return {
		runtime: null,
		parameters: [],
		permissions: { primitives: [], hosts: [], secrets: [] },
		metadata: {},
		warnings: [],
		findings: [finding],
	}
}

function warningsAbout({ name, permissions }: SkillDocument, primitives: ReadonlySet<string>): string[] {
	const warnings = permissions.primitives
		.filter((primitive) => !primitives.has(primitive))
		.map((primitive) => `It declares ${primitive}, and there is no such primitive now.`)
	if (primitives.has(name)) warnings.push(`Its name is that of the primitive ${name}, which goes before it.`)
	return warnings
}

/** What a reader would not see is written out, as everywhere but in the document itself. */
function diffOf(before: string, after: string): string {
	const options = { context: 3, timeout: DIFF_MS, maxEditLength: DIFF_EDITS }
	const patch = createTwoFilesPatch('active', 'quarantined', shown(before), shown(after), '', '', options)
	if (patch === undefined) return 'The two differ in too much to show; compare the documents as a whole.'
	return patch.length <= DIFF_LIMIT ? patch : `${patch.slice(0, DIFF_LIMIT)}\n… cut off`
}

function shown(text: string): string {
	return text
		.split('\n')
		.map((line) => visible(line.replace(/\r$/, '')))
		.join('\n')
}
