/** The files of a skill for its review: their kinds, their changes, and the findings of a scan. */
import { setImmediate as turn } from 'node:timers/promises'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { Finding, ReviewedFile } from './contract.ts'
import type { SkillDocument } from './document.ts'
import { infoOf, textIn } from './file-kind.ts'
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import { listingOf } from './folder/digest.ts'
import { scan, SEVERITY_ORDER } from './scan.ts'
import type { ScanFinding } from './scan.ts'

/** Limit of findings of a review. */
const FINDINGS_LIMIT = 500
/** Characters that are scanned before other work gets its turn. */
const PART = 256 * 1024

/** Caches scans, which are slow, and which any caller with read access may repeat. By a file's digest and path. */
const scans = new BoundedMap<string, ScanFinding[]>(512)

export function reviewedFiles(files: readonly SkillFile[], before: readonly SkillFile[] | undefined): ReviewedFile[] {
	const earlier = before && new Map(before.map((file) => [file.path, listingOf(file).sha256]))
	return files.map((file) => {
		const about = infoOf(file)
		const known = earlier?.get(file.path)
		const change = known === undefined ? 'added' : known === about.sha256 ? 'same' : 'changed'
		return { ...about, change: earlier ? change : null }
	})
}

/** The findings of all files, worst first. `document`: undefined if it cannot be parsed. */
export async function findingsIn(files: readonly SkillFile[], document: SkillDocument | undefined): Promise<Finding[]> {
	const findings: Finding[] = []
	for (const file of files) {
		const isDocument = file.path === DOCUMENT
		if (isDocument && !document) continue
		const key = `${listingOf(file).sha256} ${isDocument ? '' : file.path}`
		const found = scans.get(key) ?? (await scanned(file, isDocument ? document : undefined))
		scans.set(key, found)
		findings.push(...found.map((one) => ({ file: file.path, ...one })))
	}
	// Findings of equal severity: first those of the document, then in the order of paths and lines.
	return findings
		.toSorted(
			(a, b) =>
				SEVERITY_ORDER[a.severity] - SEVERITY_ORDER[b.severity] ||
				Number(b.file === DOCUMENT) - Number(a.file === DOCUMENT),
		)
		.slice(0, FINDINGS_LIMIT)
}

async function scanned({ path, bytes }: SkillFile, document: SkillDocument | undefined): Promise<ScanFinding[]> {
	const text = textIn(bytes)
	if (text === undefined) {
		const program = programIn(bytes)
		if (program === undefined) return []
		return [{ rule: 'executable', severity: 'high', line: 1, excerpt: '', message: `A compiled program (${program}).` }]
	}
	if (document) return scan(text, document)
	const found: ScanFinding[] = []
	let line = 0
	for (let at = 0; at < text.length && found.length < FINDINGS_LIMIT;) {
		// Cut at a line end, unless the line is too long.
		const end = text.lastIndexOf('\n', at + PART)
		const part = text.slice(at, end > at && at + PART < text.length ? end + 1 : at + PART)
		for (const one of scan(part, undefined, /\.(?:md|markdown|mdx|txt)$/i.test(path)))
			found.push({ ...one, line: one.line + line })
		line += part.split('\n').length - 1
		at += part.length
		await turn()
	}
	return found
}

/** Recognizes a compiled program by its first bytes. */
function programIn(bytes: Uint8Array): string | undefined {
	const begin = Buffer.from(bytes.subarray(0, 4)).toString('hex')
	if (begin === '7f454c46') return 'ELF'
	if (begin.startsWith('4d5a')) return 'Windows'
	if (/^(?:feedface|feedfacf|cefaedfe|cffaedfe|cafebabe)$/.test(begin)) return 'Mach-O, or Java'
	return begin === '0061736d' ? 'WebAssembly' : undefined
}
