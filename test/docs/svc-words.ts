/** Checks the commands and options of a `svc` command line that is not executed. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'

/** The code spans of a page that are `svc` commands. */
export function inlineOf(page: URL): string[] {
	const text = readFileSync(page, 'utf8').replaceAll(/^(\s*)(`{3,})[^`\n]*\n[\s\S]*?\n\s*\2[ \t]*$/gm, '')
	return [...text.matchAll(/`([^`]+)`/g)]
		.map(([, words = '']) => words.replaceAll(/\s+/g, ' '))
		.filter((one) => one.startsWith('svc '))
}

/** The problem of a line, or ''. Shell syntax around the command, such as `$(svc …)` and pipes, is ignored. */
export function problemIn(line: string, program: Command): string {
	for (const part of line.split(/[|;]|\$\(|&&/)) {
		const [, words] = /(?:^|\s)svc (.*)$/.exec(part.trim()) ?? []
		if (words === undefined) continue
		const problem = problemOf(tokensOf(words), program)
		if (problem !== '') return problem
	}
	return ''
}

function problemOf(words: string[], program: Command): string {
	let command = program
	let rest = words
	for (let [first = ''] = rest; command.commands.length > 0; [first = ''] = rest) {
		if (first.startsWith('-')) break
		const next = command.commands.find((one) => one.name() === first || one.aliases().includes(first))
		// A group without a command, possibly with a default one.
		if (!next) {
			if (first === '' || /[A-Z<…]/.test(first) || command.registeredArguments.length > 0) break
			return first === 'help' ? '' : `there is no ${command.name()} ${first}`
		}
		command = next
		rest = rest.slice(1)
	}
	const known = [...command.options, ...program.options].flatMap(({ short, long }) => [short, long])
	const options = rest
		.slice(0, rest.includes('--') ? rest.indexOf('--') : undefined)
		.filter((word) => /^--?[a-z]/.test(word))
	const unknown = options
		.map((word) => word.split('=', 1)[0])
		.find((word) => !known.includes(word) && word !== '--help')
	return unknown === undefined ? '' : `${command.name()} has no option ${unknown}`
}

/** Splits into words; quoted text is one word. */
function tokensOf(text: string): string[] {
	return (text.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll(/^['"]|['"),.;]+$/g, ''))
}
