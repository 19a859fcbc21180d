/**
 * Finds what a reviewer should check in a text of a skill before they approve it. It finds only known tricks, so a text without
 * findings is not necessarily safe.
 *
 * Every pattern takes linear time: it has no nested repetition, and the distance between two words is limited.
 */
import { someOf } from '../../core/util/some-of.ts'
import { findCapabilities } from './capabilities.ts'
import type { AddFinding } from './capabilities.ts'
import type { Finding } from './contract.ts'
import type { SkillDocument } from './document.ts'
import { invisibleIn, plainText, visible } from './invisible.ts'
import { phrases } from './phrases.ts'

/** Limit of findings of one rule. */
const FINDINGS_LIMIT = 40
const EXCERPT_LIMIT = 160
const CODES_LIMIT = 12

/** The order of severities in a list: the most severe first. */
export const SEVERITY_ORDER = { high: 0, medium: 1, low: 2 }

export type ScanFinding = Omit<Finding, 'file'>

/** `document`: given if the text is a skill's document. `isMarkdown`: whether HTML comments are hidden from a reader. */
export function scan(text: string, document: SkillDocument | undefined, isMarkdown = true): ScanFinding[] {
	const findings: ScanFinding[] = []
	const counts = new Map<string, number>()
	const add: AddFinding = (rule, severity, line, excerpt, message) => {
		const count = (counts.get(rule) ?? 0) + 1
		counts.set(rule, count)
		if (count > FINDINGS_LIMIT) return
		const more = count === FINDINGS_LIMIT ? ` At most ${FINDINGS_LIMIT} findings of this rule are listed.` : ''
		findings.push({ rule, severity, line, excerpt: excerptOf(excerpt), message: message + more })
	}

	for (const [at, line] of text
		.replace(/^\uFEFF/, '')
		.split('\n')
		.entries())
		invisible(line, at + 1)
	if (isMarkdown) htmlComments(text)
	patterns(text, 1)
	if (document) aboutSkill(document)
	return findings.toSorted((a, b) => SEVERITY_ORDER[a.severity] - SEVERITY_ORDER[b.severity] || a.line - b.line)

	function aboutSkill(skill: SkillDocument): void {
		// YAML escapes can hide text that the document does not show.
		for (const { value, line } of hiddenByEscapes(text, skill)) {
			invisible(value, line)
			patterns(value, line)
		}
		findCapabilities(skill, add)
		confusableName(skill)
	}

	function invisible(line: string, at: number): void {
		const found = invisibleIn(line.replace(/\r$/, ''))
		if (!found) return
		const codes = someOf(found.codes, CODES_LIMIT, ' ')
		const what = {
			tags: 'Characters that are invisible to readers, but may be text for a model',
			bidi: 'Characters that change the order in which text is shown',
			other: 'Invisible characters',
		}[found.kind]
		const where = Math.max(0, line.search(/[^\t\x20-\x7e]/) - 20)
		add('invisible-characters', found.kind === 'other' ? 'medium' : 'high', at, line.slice(where), `${what}: ${codes}.`)
	}

	function htmlComments(all: string): void {
		const lineAt = lineCounter(all)
		// Continue after the end of a comment, since comments do not nest. A search for the end from each start would be quadratic.
		for (let at = all.indexOf('<!--'), end = 0; at >= 0; at = all.indexOf('<!--', end + 3)) {
			end = all.indexOf('-->', at)
			const comment = all.slice(at, end < 0 ? undefined : end + 3)
			add('html-comment', 'medium', lineAt(at), comment, 'A comment, which is not shown, but which a model reads.')
			if (end < 0) return
		}
	}

	function patterns(raw: string, firstLine: number): void {
		const plain = plainText(raw)
		const lineAt = lineCounter(plain)
		const seen = new Set<string>()
		for (const { rule, severity, pattern, message } of phrases) {
			for (const match of plain.matchAll(pattern)) {
				const line = lineAt(match.index) + firstLine - 1
				const key = `${rule} ${rule === 'address' ? match[0] : line}`
				if (seen.has(key)) continue
				seen.add(key)
				add(rule, severity, line, around(plain, match.index, match[0].length), message)
			}
		}
	}

	function confusableName({ name, lineOf }: SkillDocument): void {
		const scripts = [/\p{Script=Latin}/u, /\p{Script=Cyrillic}/u, /\p{Script=Greek}/u]
		if (name.split(/[^\p{L}]+/u).every((word) => scripts.filter((script) => script.test(word)).length < 2)) return
		add('confusable-name', 'high', lineOf(['name']), name, 'Letters of several scripts in one word of the name.')
	}
}

/** Texts of the front matter that a model gets, but that the document does not contain literally. */
function hiddenByEscapes(text: string, document: SkillDocument): { value: string; line: number }[] {
	const { description, parameters, lineOf } = document
	const shown = [
		{ value: description, line: lineOf(['description']) },
		...parameters.map((one, at) => ({ value: one.description, line: lineOf(['parameters', at, 'description']) })),
	]
	return shown.filter(({ value }) => value.split('\n').some((part) => !text.includes(part)))
}

/** Returns a function from positions to line numbers; efficient for ascending positions. */
function lineCounter(text: string): (at: number) => number {
	const first = text.indexOf('\n')
	let line = 1
	let from = 0
	let next = first
	return (at) => {
		if (at < from) [line, from, next] = [1, 0, first]
		while (next >= 0 && next < at) {
			line++
			from = next + 1
			next = text.indexOf('\n', from)
		}
		return line
	}
}

/** The match with the text around it on its lines. The search is limited, since a line may be as long as the document. */
function around(text: string, at: number, length: number): string {
	const before = text.slice(Math.max(0, at - 20), at)
	const last = at + Math.max(0, length - 1)
	const end = text.slice(last, at + EXCERPT_LIMIT).indexOf('\n')
	return before.slice(before.lastIndexOf('\n') + 1) + text.slice(at, end < 0 ? at + EXCERPT_LIMIT : last + end)
}

function excerptOf(text: string): string {
	const shown = visible(text.trim().slice(0, EXCERPT_LIMIT), true)
	const whole = shown.length <= EXCERPT_LIMIT && text.trim().length <= EXCERPT_LIMIT
	return whole ? shown : `${shown.slice(0, EXCERPT_LIMIT - 1)}…`
}
