/** Collects everything that a reviewer needs to decide on an approval. */
import { isFault } from '../../core/errors.ts'
import type { Finding, SkillReview } from './contract.ts'
import { diffOf } from './diff.ts'
import { documentOf, readDocument } from './document.ts'
import type { SkillDocument } from './document.ts'
import type { FileInfo } from './file-kind.ts'
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import { digestOfListing } from './folder/digest.ts'
import { viewOf } from './records.ts'
import type { IndexEntry, StoredSkill } from './records.ts'
import { findingsIn, reviewedFiles } from './review-files.ts'
import { scriptsWarning } from './scripts.ts'

/** `active`: the revision that an approval would replace. `primitives`: the names of existing primitives. */
export async function reviewOf(
	entry: IndexEntry,
	{ record, files }: StoredSkill,
	active: StoredSkill | undefined,
	primitives: ReadonlySet<string>,
): Promise<SkillReview> {
	const listed = reviewedFiles(files, active?.files)
	const paths = new Set(files.map((file) => file.path))
	const { markdown, document, problem } = await read(files)
	const findings = await findingsIn(files, document)
	return {
		...viewOf(entry, record),
		digest: digestOfListing(listed),
		source: record.source,
		size: record.size,
		tool: entry.tool,
		approved_at: record.approved_at,
		approved_by: record.approved_by,
		replaces: active?.record.id ?? null,
		left_out: record.left_out ?? [],
		files: listed,
		removed_files: (active?.files ?? []).map((file) => file.path).filter((path) => !paths.has(path)),
		diff: active ? diffOf(active.files, files) : null,
		runtime: document?.program ? 'javascript' : null,
		parameters: document?.parameters ?? [],
		permissions: document?.permissions ?? { primitives: [], hosts: [], secrets: [] },
		metadata: document?.metadata ?? {},
		warnings: document ? warningsAbout(document, listed, primitives) : [],
		findings: problem ? [problem, ...findings] : findings,
		program: document?.program?.code ?? null,
		program_line: document?.program?.line ?? null,
		markdown,
	}
}

/** `problem`: why the document cannot be parsed, since it was changed in the store, or installed under earlier rules. */
async function read(
	files: readonly SkillFile[],
): Promise<{ markdown: string; document?: SkillDocument; problem?: Finding }> {
	let markdown = ''
	try {
		markdown = documentOf(files)
		return { markdown, document: await readDocument(markdown) }
	} catch (error) {
		if (!isFault(error, 'skill_invalid')) throw error
		const { message } = error
		return {
			markdown,
			problem: { file: DOCUMENT, rule: 'unreadable', severity: 'high', line: 1, excerpt: '', message },
		}
	}
}

function warningsAbout(document: SkillDocument, files: readonly FileInfo[], primitives: ReadonlySet<string>): string[] {
	const { name, permissions, body } = document
	const scripts = scriptsWarning(files, body)
	return [
		...document.warnings,
		...(scripts ? [scripts] : []),
		...permissions.primitives
			.filter((primitive) => !primitives.has(primitive))
			.map((primitive) => `It declares the primitive ${primitive}, which does not exist now.`),
		...(primitives.has(name) ? [`It has the same name as the primitive ${name}, which takes precedence.`] : []),
	]
}
