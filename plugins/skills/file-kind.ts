/** What a file of a skill is, for its review and for the model: nothing of it is executed here but the document's program. */
import { DOCUMENT } from './folder/contract.ts'
import type { SkillFile } from './folder/contract.ts'
import { listingOf } from './folder/digest.ts'
import type { ListedFile } from './folder/digest.ts'

/** A file without its bytes: as it is stored, and as clients see it. */
export interface FileInfo extends ListedFile {
	kind: 'document' | 'text' | 'script' | 'binary'
	/** The language of a script, which does not run here. */
	language?: string
}

export function infoOf(file: SkillFile): FileInfo {
	return { ...listingOf(file), ...kindOf(file) }
}

const languages: Record<string, string> = {
	py: 'Python',
	pyw: 'Python',
	ipynb: 'Python',
	sh: 'shell',
	bash: 'shell',
	zsh: 'shell',
	fish: 'shell',
	bats: 'shell',
	ps1: 'PowerShell',
	bat: 'Windows',
	cmd: 'Windows',
	js: 'JavaScript',
	mjs: 'JavaScript',
	cjs: 'JavaScript',
	jsx: 'JavaScript',
	ts: 'TypeScript',
	mts: 'TypeScript',
	cts: 'TypeScript',
	tsx: 'TypeScript',
	rb: 'Ruby',
	pl: 'Perl',
	php: 'PHP',
	lua: 'Lua',
	r: 'R',
	jl: 'Julia',
	go: 'Go',
	rs: 'Rust',
	java: 'Java',
	c: 'C',
	cpp: 'C++',
	swift: 'Swift',
	kt: 'Kotlin',
	sql: 'SQL',
	ql: 'CodeQL',
	vbs: 'Windows',
	applescript: 'AppleScript',
}

const interpreters: Record<string, string> = {
	python: 'Python',
	bash: 'shell',
	sh: 'shell',
	zsh: 'shell',
	node: 'JavaScript',
	deno: 'TypeScript',
	bun: 'TypeScript',
	ruby: 'Ruby',
	perl: 'Perl',
	php: 'PHP',
	uv: 'Python',
}

function kindOf({ path, bytes }: SkillFile): Pick<FileInfo, 'kind' | 'language'> {
	if (path === DOCUMENT) return { kind: 'document' }
	const text = textIn(bytes)
	if (text === undefined) return { kind: 'binary' }
	const name = path.slice(path.lastIndexOf('/') + 1)
	const dot = name.lastIndexOf('.')
	const extension = dot > 0 ? name.slice(dot + 1).toLowerCase() : ''
	const language = Object.hasOwn(languages, extension) ? languages[extension] : shebang(text)
	return language === undefined ? { kind: 'text' } : { kind: 'script', language }
}

/** With its byte order mark, if any. Undefined for bytes that are not UTF-8, or no text. */
export function textIn(bytes: Uint8Array): string | undefined {
	if (bytes.includes(0)) return undefined
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
	} catch {
		return undefined
	}
}

function shebang(text: string): string | undefined {
	const line = /^#![^\n]{1,200}/.exec(text)?.[0]
	if (line === undefined) return undefined
	const program = /(?:^#!\s*|\/|\s)(?:env\s+(?:-S\s+)?)?([a-z]+)[0-9.]*(?=\s|$)/g
	for (const [, name = ''] of line.matchAll(program)) if (Object.hasOwn(interpreters, name)) return interpreters[name]
	return 'a program'
}
