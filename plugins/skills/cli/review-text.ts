/** The text of a skill's review: its description, permissions, files, findings and document. */
import type { Style } from '../../../core/cli/contract.ts'
import { when } from '../../../core/cli/when.ts'
import type { SkillReview } from '../contract.ts'

/** Includes the complete program. `full`: includes the complete document even if there is a diff. */
export function reviewText(review: SkillReview, style: Style, full = false): string {
	const { diff, replaces, program, program_line } = review
	const plain = (line: string): string => style.plain(line)
	const sections: [title: string, lines: string[]][] = [
		['May use', permissions(review).map(plain)],
		['Parameters', parameters(review).map(plain)],
		['Warnings', review.warnings.map((text) => style.warn(plain(text)))],
		['Files', review.files.length > 1 ? fileLines(review, style) : []],
		['Not installed', leftOut(review, style)],
		['Findings of the scan', findings(review, style)],
		['Lines with invisible characters', invisibleLines(review, style)],
		[
			'Program, with the lines of the document',
			program === null ? [] : numbered(lines(program), style, program_line ?? 1),
		],
	]
	if (diff !== null) sections.push([`Changes against the active revision ${replaces ?? ''}`, changes(diff, style)])
	if (diff === null || full || !diff.includes('@@'))
		sections.push(['Document', numbered(lines(review.markdown), style)])
	const shown = sections.filter(([, text]) => text.length > 0)
	const parts = shown.map(([title, text]) => [style.bold(title), ...text.map((line) => `  ${line}`)].join('\n'))
	return [about(review, style), ...parts].join('\n\n')
}

function about(review: SkillReview, style: Style): string {
	const { name, description, status, source, runtime } = review
	const from =
		source.kind === 'inline'
			? 'sent in the request'
			: source.kind === 'archive'
				? 'an archive'
				: [source.url, source.resolved_url].filter(Boolean).join(' → ')
	const state = status === 'active' ? style.good('active') : style.warn('quarantined')
	return [
		`${style.bold(style.plain(name))}  ${state}`,
		style.plain(description),
		'',
		style.fields([
			['id', review.id],
			['digest', `sha256:${review.digest}`],
			['kind', runtime === null ? 'instructions for the model' : 'a program, which runs in a sandbox'],
			['tool', style.plain(review.tool)],
			['source', style.plain(from)],
			['size', `${review.size} bytes${review.files.length > 1 ? ` in ${review.files.length} files` : ''}`],
			['installed', when(review.installed_at)],
			['approved', when(review.approved_at)],
		]),
	].join('\n')
}

function permissions({ permissions: { primitives, hosts, secrets }, runtime }: SkillReview): string[] {
	const declared = [
		['primitives', primitives],
		['hosts', hosts],
		['secrets', secrets],
	] as const
	const lines = declared.filter(([, names]) => names.length > 0).map(([what, names]) => `${what}: ${names.join(', ')}`)
	if (lines.length > 0) return lines
	return [runtime === null ? 'only what the model may use anyway: it has no program' : 'only its arguments']
}

function parameters(review: SkillReview): string[] {
	return review.parameters.map(
		({ name, type, required, description }) => `${name} (${type}${required ? '' : ', optional'}): ${description}`,
	)
}

function findings(review: SkillReview, style: Style): string[] {
	if (review.findings.length === 0) return ['none, which does not mean that it is safe: read it']
	const colour = { high: style.bad, medium: style.warn, low: style.dim }
	return review.findings.flatMap(({ file, severity, line, rule, message, excerpt }) => [
		`${colour[severity](severity.toUpperCase())} ${file === 'SKILL.md' ? '' : `${style.plain(file)} `}line ${line}, ${style.plain(rule)}: ${style.plain(message)}`,
		...(excerpt === '' ? [] : [style.dim(`    ${style.plain(excerpt)}`)]),
	])
}

/** One line per file. */
export function fileLines(
	{ files, removed_files }: Pick<SkillReview, 'files' | 'removed_files'>,
	style: Style,
): string[] {
	const width = Math.max(0, ...files.map((file) => String(file.size).length))
	const changes = { added: style.good(', added'), changed: style.warn(', changed'), same: '' }
	const shown = files.map(({ path, size, kind, language = '', change }) => {
		const what = kind === 'script' ? style.warn(`${language} script, does not run here`) : kind
		return `${String(size).padStart(width)}  ${style.plain(path)}  ${style.dim('(')}${what}${change ? changes[change] : ''}${style.dim(')')}`
	})
	return [
		...shown,
		...removed_files.map((path) => `${'-'.padStart(width)}  ${style.plain(path)}  (${style.bad('removed')})`),
	]
}

function leftOut({ left_out }: SkillReview, style: Style): string[] {
	return left_out.map(({ path, why }) => `${style.plain(path)} (${why === 'link' ? 'a link' : 'a special file'})`)
}

/** The text of a file with the numbers of its lines. */
export function fileText(text: string, style: Style): string {
	return numbered(lines(text), style).join('\n')
}

/** Shows such lines with escapes, so that the reviewer sees everything that a model would read. */
function invisibleLines({ markdown }: SkillReview, style: Style): string[] {
	const lines = markdown.replaceAll('\r\n', '\n').split('\n')
	const found = lines.flatMap((line, at) => (style.plain(line) === line ? [] : [`${at + 1}: ${style.plain(line)}`]))
	return found.length <= SHOWN ? found : [...found.slice(0, SHOWN), `and ${found.length - SHOWN} more`]
}

const SHOWN = 20

function changes(diff: string, style: Style): string[] {
	return lines(diff).map((line) => {
		const text = style.plain(line)
		if (line.startsWith('@@')) return style.dim(text)
		if (line.startsWith('+')) return style.good(text)
		return line.startsWith('-') ? style.bad(text) : text
	})
}

function numbered(all: readonly string[], style: Style, first = 1): string[] {
	const width = String(first + all.length - 1).length
	return all.map((line, at) => `${style.dim(String(at + first).padStart(width))}  ${style.plain(line)}`)
}

function lines(text: string): string[] {
	return text.replaceAll('\r\n', '\n').replace(/\n$/, '').split('\n')
}
