/** Everything that an approval is decided on. */
import { isFault, messageOf } from '../../core/errors.ts'
import type { Finding, SkillReview } from './contract.ts'
import { diffOf } from './diff.ts'
import { documentOf, readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import { findingsIn, reviewedFiles } from './review-files.ts'
import { scriptsWarning } from './scripts.ts'

type Read = Pick<
	SkillReview,
	| 'files'
	| 'removed_files'
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

/** `before`: the active revision's files. `primitives`: the names of the current ones. */
export async function reviewOf(
	files: readonly SkillFile[],
	before: readonly SkillFile[] | undefined,
	primitives: ReadonlySet<string>,
): Promise<Read> {
	const known = new Set(files.map((file) => file.path))
	const shown = {
		files: reviewedFiles(files, before),
		removed_files: (before ?? []).map((file) => file.path).filter((path) => !known.has(path)),
		diff: before ? diffOf(before, files) : null,
	}
	let markdown = ''
	let document: SkillDocument | undefined
	let problem = ''
	try {
		markdown = documentOf(files)
		document = await readDocument(markdown)
	} catch (error) {
		if (!isFault(error, 'skill_invalid')) throw error
		problem = messageOf(error)
	}
	const findings = await findingsIn(files, document)
	if (!document) return { ...shown, ...unreadable(problem, findings), markdown }
	const { parameters, permissions, metadata, program, warnings } = document
	const scripts = scriptsWarning(shown.files, document.body)
	return {
		...shown,
		runtime: program ? 'javascript' : null,
		parameters,
		permissions,
		metadata,
		warnings: [...warnings, ...(scripts ? [scripts] : []), ...warningsAbout(document, primitives)],
		findings,
		program: program?.code ?? null,
		program_line: program?.line ?? null,
		markdown,
	}
}

/** A document that was changed in the store, or installed by an earlier version with other rules. */
function unreadable(
	message: string,
	others: readonly Finding[],
): Omit<Read, 'files' | 'removed_files' | 'diff' | 'markdown'> {
	const finding: Finding = { file: DOCUMENT, rule: 'unreadable', severity: 'high', line: 1, excerpt: '', message }
	return {
		runtime: null,
		parameters: [],
		permissions: { primitives: [], hosts: [], secrets: [] },
		metadata: {},
		warnings: [],
		findings: [finding, ...others],
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
