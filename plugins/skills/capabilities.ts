/**
 * Compares a program's declared permissions with those that its text visibly uses. This only helps the reviewer: undeclared calls
 * are denied at run time, whatever it finds.
 */
import type { Finding } from './contract.ts'
import type { SkillDocument } from './document.ts'

/** Limit of reported places where `svc` is passed to other code. */
const PASSED_LIMIT = 10

type Kind = 'primitives' | 'hosts' | 'secrets'

export type AddFinding = (
	rule: string,
	severity: Finding['severity'],
	line: number,
	excerpt: string,
	message: string,
) => void

const methods: Record<string, Kind> = { primitive: 'primitives', fetch: 'hosts', secret: 'secrets' }
const nouns = { primitives: 'the primitive', hosts: 'the host', secrets: 'the secret' } as const

export function findCapabilities({ program, permissions, lineOf }: SkillDocument, add: AddFinding): void {
	if (!program) return
	const lines = program.code.split('\n')
	const used: Record<Kind, Set<string>> = { primitives: new Set(), hosts: new Set(), secrets: new Set() }
	const unclear = new Set<Kind>()

	for (const { kind, name, line } of usesIn(lines)) {
		const at = program.line + line
		const excerpt = lines[line] ?? ''
		if (name === undefined) {
			unclear.add(kind)
			add('dynamic-name', 'medium', at, excerpt, `Which ${kind} it uses is known only at run time.`)
			continue
		}
		used[kind].add(name)
		if (permissions[kind].some((declared) => declared === name || (kind === 'hosts' && sameHost(declared, name))))
			continue
		const message = `Uses ${nouns[kind]} ${name}, which permissions.${kind} does not list: the call would be denied.`
		add('undeclared-use', 'high', at, excerpt, message)
	}
	for (const line of passedOn(program.code).take(PASSED_LIMIT)) {
		for (const kind of Object.values(methods)) unclear.add(kind)
		const message = 'Passes svc to other code: what it uses is known only at run time.'
		add('dynamic-name', 'medium', program.line + line, lines[line] ?? '', message)
	}
	for (const kind of Object.values(methods)) {
		if (unclear.has(kind)) continue
		for (const [at, name] of permissions[kind].entries()) {
			if ([...used[kind]].some((one) => one === name || (kind === 'hosts' && sameHost(name, one)))) continue
			const message = `Declares ${nouns[kind]} ${name}, but does not use it.`
			add('unused-permission', 'low', lineOf(['permissions', kind, at]), name, message)
		}
	}
	const { primitives, hosts, secrets } = permissions
	const sensitive = [
		...secrets.map((name) => `the secret ${name}`),
		...primitives
			.filter((name) => name === 'vault.read' || (name.startsWith('memory.') && !name.endsWith('write')))
			.map((name) => `the results of ${name}`),
	]
	if (hosts.length === 0 || sensitive.length === 0) return
	const message = `May send ${sensitive.join(', ')} to ${hosts.join(', ')}.`
	add('may-send-out', 'medium', lineOf(['permissions', 'hosts']), hosts.join(' '), message)
}

interface Use {
	kind: Kind
	/** Undefined if it is not a literal. */
	name: string | undefined
	/** 0 is the first. */
	line: number
}

function* usesIn(lines: readonly string[]): Generator<Use> {
	for (const [line, text] of lines.entries()) {
		for (const match of text.matchAll(/\bsvc\s{0,8}\??\.\s{0,8}(primitive|fetch|secret)\b\s{0,8}(\(?)/g)) {
			const kind = methods[match[1] ?? ''] ?? 'primitives'
			// The first argument may be on the next line.
			const from = match.index + match[0].length
			const rest = `${text.slice(from, from + 600)}\n${(lines[line + 1] ?? '').slice(0, 600)}`
			const name = match[2] === '' ? undefined : kind === 'hosts' ? hostIn(rest) : nameIn(rest)
			yield { kind, name, line }
		}
		for (const [, name] of text.matchAll(/\{\{secret:([A-Za-z0-9_.-]{1,128})\}\}/g))
			yield { kind: 'secrets', name, line }
	}
}

function nameIn(text: string): string | undefined {
	const literal = /^\s{0,200}(?:'([^'\\\n]{0,300})'|"([^"\\\n]{0,300})"|`([^`\\$\n]{0,300})`)\s{0,200}[,)]/.exec(text)
	return literal?.[1] ?? literal?.[2] ?? literal?.[3]
}

/** The host, if the address is a literal up to the end of the host, so that nothing can be appended to it. */
function hostIn(text: string): string | undefined {
	const start = /^\s{0,200}['"`]https:\/\/([A-Za-z0-9.:-]{1,300})(?=[/?#]|['"`]\s{0,200}[,)])/.exec(text)
	return start?.[1]?.toLowerCase()
}

/** Lines that use `svc` other than as the object of a method call, or give it another name. */
function* passedOn(code: string): Generator<number> {
	const parameter = secondParameter(code)
	const isNamed = parameter === undefined || /^\s{0,200}svc\b/.test(parameter.text)
	if (parameter && !isNamed) yield lineOf(code, parameter.at)
	for (const { index } of code.matchAll(/\bsvc\b(?!\s{0,8}\??\.\s{0,8}(?:primitive|fetch|secret|log)\b)/g)) {
		if (parameter && index >= parameter.at && index < parameter.at + parameter.text.length) continue
		// Search backwards only so far: the line may be as long as the program.
		const before = code.slice(Math.max(0, index - 500), index)
		if (!before.includes('//', before.lastIndexOf('\n') + 1)) yield lineOf(code, index)
	}
}

/** The second parameter of the default export. Its text is `?` if the export is not a function literal. */
function secondParameter(code: string): { text: string; at: number } | undefined {
	const head = /\bexport\s{1,8}default\s{1,8}(?:async\b\s{0,8})?(?:function\b[^(]{0,100})?\(/.exec(code)
	if (!head) {
		const exported = /\bexport\b/.exec(code)
		return exported ? { text: '?', at: exported.index } : undefined
	}
	const from = head.index + head[0].length
	let depth = 0
	let second: number | undefined
	for (let at = from; at < Math.min(code.length, from + 4_000); at++) {
		const character = code[at] ?? ''
		if (character === ',' && depth === 0) second ??= at + 1
		else if ('([{<'.includes(character)) depth++
		else if (')]}'.includes(character) || (character === '>' && code[at - 1] !== '=')) {
			if (depth-- === 0) return second === undefined ? undefined : { text: code.slice(second, at), at: second }
		}
	}
	return { text: '?', at: head.index }
}

/** 0 is the first. */
function lineOf(code: string, at: number): number {
	return code.slice(0, at).split('\n').length - 1
}

function sameHost(declared: string, used: string): boolean {
	return !declared.includes(':') && used.split(':')[0] === declared
}
