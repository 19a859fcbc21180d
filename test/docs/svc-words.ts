/** Looks at a command line of `svc` that nobody runs: are its commands and options known? */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'

/** Code spans of a page that are commands of `svc`. */
export function inlineOf(page: URL): string[] {
	const text = readFileSync(page, 'utf8').replaceAll(/^(\s*)(`{3,})[^`\n]*\n[\s\S]*?\n\s*\2[ \t]*$/gm, '')
	return [...text.matchAll(/`([^`]+)`/g)]
		.map(([, words = '']) => words.replaceAll(/\s+/g, ' '))
		.filter((one) => one.startsWith('svc '))
}

/** Empty where all is well. Words of the shell around the command, such as `$(svc …)` and pipes, are left out. */
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
		// A group that is named as such, or one that has a list.
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

/** What is quoted is one word. */
function tokensOf(text: string): string[] {
	return (text.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll(/^['"]|['"),.;]+$/g, ''))
}
