import type * as ClackModule from '@clack/prompts'
import { allBytes } from '../util/all-bytes.ts'
import { CliError } from './contract.ts'
import type { Prompts, Validate } from './contract.ts'
import { KeyboardTurn } from './keyboard-turn.ts'
import type { LineSource } from './lines.ts'
import type { Sink } from './output.ts'
import { plain } from './plain.ts'

export interface PromptOptions {
	stdin: LineSource
	stderr: Sink
	signal: AbortSignal
}

/** The most that is read from standard input. */
const INPUT_LIMIT_BYTES = 2 * 1024 * 1024

/** Suggestions that are shown at the same time. */
const SUGGESTED = 10

/** The size of a terminal that reports none, until it does. */
const USUAL_SIZE = { columns: 80, rows: 24 }

type Clack = typeof ClackModule
/** Clack's types require the streams of a terminal. */
type Common = Pick<Parameters<Clack['confirm']>[0], 'input' | 'output' | 'signal' | 'withGuide' | 'message'>

/** Questions go to standard error: standard output belongs to the answer. */
export function openPrompts({ stdin, stderr, signal }: PromptOptions): Prompts {
	const canAsk = stdin.isTTY === true && stderr.isTTY === true
	const turn = new KeyboardTurn()

	async function ask<T>(
		question: string,
		how: (clack: Clack, common: Common) => Promise<T | symbol>,
		until = signal,
	): Promise<T> {
		const message = plain(question, { lines: true })
		if (!canAsk)
			throw new CliError(
				'usage',
				`without a terminal, svc cannot ask "${message}"; --help shows how to give the answer`,
			)
		// A serial line and a new container report the size 0, with which Clack shows one character per line.
		if (stderr.columns === 0) Object.assign(stderr, USUAL_SIZE)
		// Few commands ask, so Clack is loaded at the first question.
		const clack = await import('@clack/prompts')
		const common = { input: stdin, output: stderr, signal: until, withGuide: false, message } as Common
		using _ = turn.ask()
		const answer = await how(clack, common)
		if (clack.isCancel(answer)) throw new CliError('interrupted', '')
		return answer as T
	}

	return {
		canAsk,
		async text(question, { initial, fallback, placeholder = fallback, validate, signal: until } = {}) {
			const answer = await ask<string | undefined>(
				question,
				(clack, common) =>
					clack.text({
						...common,
						...(initial !== undefined && { initialValue: initial }),
						...(fallback !== undefined && { defaultValue: fallback }),
						...(placeholder !== undefined && { placeholder: plain(placeholder) }),
						...(validate && { validate: checking(validate, fallback) }),
					}),
				until,
			)
			return answer ?? '' // nothing was typed
		},
		suggest: (question, names, { placeholder, validate } = {}) =>
			ask<string>(question, (clack, common) =>
				clack.autocomplete({
					...common,
					maxItems: SUGGESTED,
					...(placeholder !== undefined && { placeholder }),
					validate: (chosen) =>
						checking((name) => (name === '' ? 'type a name' : validate?.(name)))(String(chosen ?? '')),
					options() {
						const typed = this.userInput.trim()
						const listed = names.map((value) => ({ value, label: plain(value) }))
						if (typed === '' || names.includes(typed)) return listed
						return [...listed, { value: typed, label: `${plain(typed)} (as typed)` }]
					},
				}),
			),
		choice: (question, choices, { signal: until } = {}) =>
			ask<string>(
				question,
				(clack, common) =>
					clack.select({ ...common, options: choices.map((value) => ({ value, label: plain(value) })) }),
				until,
			),
		confirm: (question) => ask<boolean>(question, (clack, common) => clack.confirm({ ...common, initialValue: false })),
		async secret(question, { validate } = {}) {
			const checks = validate ? { validate: checking(validate) } : {}
			if (canAsk)
				return (await ask<string>(question, (clack, common) => clack.password({ ...common, ...checks }))) ?? ''
			if (stdin.isTTY)
				throw new CliError(
					'usage',
					`without a terminal, svc cannot ask "${plain(question)}"; pass it on standard input`,
				)
			return (await readAll(stdin)).toString().replace(/\r?\n$/, '')
		},
		input: () => readAll(stdin),
		async lines(prompt, history = { entries: [], add() {} }) {
			const { pipedLines, typedLines } = await import('./lines.ts')
			return canAsk ? typedLines({ stdin, stderr, signal, turn, history }, plain(prompt)) : pipedLines(stdin, signal)
		},
	}
}

/** Clack passes undefined for an empty answer. */
function checking(validate: Validate, fallback = ''): (typed: string | undefined) => string | undefined {
	return (typed) => {
		const problem = validate(typed || fallback)
		return problem === undefined ? undefined : plain(problem)
	}
}

function readAll(stdin: LineSource): Promise<Buffer> {
	return allBytes(stdin, INPUT_LIMIT_BYTES, () => new CliError('usage', 'standard input holds more than 2 MiB'))
}
