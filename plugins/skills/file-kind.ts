/** Determines the kind of a skill's file, for the review and the model. Scripts are never executed; only the document's program is. */
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

/** Languages by file extension. */
const languages = byWord({
	Python: 'py pyw ipynb',
	shell: 'sh bash zsh fish bats',
	PowerShell: 'ps1',
	Windows: 'bat cmd vbs',
	JavaScript: 'js mjs cjs jsx',
	TypeScript: 'ts mts cts tsx',
	Ruby: 'rb',
	Perl: 'pl',
	PHP: 'php',
	Lua: 'lua',
	R: 'r',
	Julia: 'jl',
	Go: 'go',
	Rust: 'rs',
	Java: 'java',
	C: 'c',
	'C++': 'cpp',
	Swift: 'swift',
	Kotlin: 'kt',
	SQL: 'sql',
	CodeQL: 'ql',
	AppleScript: 'applescript',
})

/** Languages by interpreter. */
const interpreted = byWord({
	Python: 'python uv',
	shell: 'bash sh zsh',
	JavaScript: 'node',
	TypeScript: 'deno bun',
	Ruby: 'ruby',
	Perl: 'perl',
	PHP: 'php',
})

function byWord(languages: Record<string, string>): Map<string, string> {
	return new Map(Object.entries(languages).flatMap(([name, words]) => words.split(' ').map((word) => [word, name])))
}

function kindOf({ path, bytes }: SkillFile): Pick<FileInfo, 'kind' | 'language'> {
	if (path === DOCUMENT) return { kind: 'document' }
	const text = textIn(bytes)
	if (text === undefined) return { kind: 'binary' }
	const name = path.slice(path.lastIndexOf('/') + 1)
	const dot = name.lastIndexOf('.')
	const extension = dot > 0 ? name.slice(dot + 1).toLowerCase() : ''
	const language = languages.get(extension) ?? shebang(text)
	return language === undefined ? { kind: 'text' } : { kind: 'script', language }
}

/** The text of a file, with its byte order mark if it has one. Undefined if the bytes are not UTF-8 or contain NUL. */
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
	const names = Array.from(line.matchAll(program), ([, name = '']) => interpreted.get(name))
	return names.find((name) => name !== undefined) ?? 'a program'
}
