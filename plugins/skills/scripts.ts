/** Texts for reviewers and models about code in a skill that does not run in this gateway. */
import type { FileInfo } from './file-kind.ts'

/** For a reviewer. Undefined if the skill has no such code. */
export function scriptsWarning(files: readonly FileInfo[], body: string): string | undefined {
	const languages = languagesOf(files, body)
	if (languages.length === 0) return undefined
	const paths = files.filter((file) => file.kind === 'script').map((file) => file.path)
	const where =
		paths.length === 0
			? 'It has commands'
			: paths.length === 1
				? `${paths[0]} is a script`
				: `${paths.length} files are scripts`
	return `${where} (${languages.join(', ')}): this does not run here, since the gateway has no shell and no interpreter. A model can only read it.`
}

/** For a model that uses the skill. Undefined if the skill has no such code. */
export function scriptsNote(files: readonly FileInfo[], body: string): string | undefined {
	const languages = languagesOf(files, body)
	if (languages.length === 0) return undefined
	return `This gateway runs no scripts and no commands (${languages.join(', ')}). If the skill tells you to run one, read it and do its work with the tools that you have; if that is not possible, say so.`
}

const fence = /^[ \t]{0,12}(?:`{3,}|~{3,})[ \t]*(bash|shell|sh|zsh|console|python|py|powershell|ruby|perl)\b/gim
const fenced: Record<string, string> = {
	python: 'Python',
	py: 'Python',
	powershell: 'PowerShell',
	ruby: 'Ruby',
	perl: 'Perl',
}

function languagesOf(files: readonly FileInfo[], body: string): string[] {
	const ofFiles = files.flatMap(({ kind, language }) => (kind === 'script' && language ? [language] : []))
	const ofBody = [...body.matchAll(fence)].map(([, word = '']) => fenced[word.toLowerCase()] ?? 'shell')
	return [...new Set([...ofFiles, ...ofBody])]
}
