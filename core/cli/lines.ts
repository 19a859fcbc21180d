/** Reads lines that a person types or that are piped in, also while other work continues. */
import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import type { History, Lines } from './contract.ts'
import type { KeyboardTurn } from './keyboard-turn.ts'
import type { Sink } from './output.ts'
import { onAbort } from '../util/on-abort.ts'
import { afterGap } from './after-gap.ts'
import { BREAK, MARK_PASTE, promptKeys, UNMARK_PASTE } from './prompt-keys.ts'

/** The standard input of a command. */
export type LineSource = NodeJS.ReadableStream & { isTTY?: boolean }

/** Lines that arrive within this time of one another were pasted. */
const PASTE_GAP_MS = 30

interface Terminal {
	stdin: LineSource
	stderr: Sink
	signal: AbortSignal
	turn: KeyboardTurn
	history: History
}

/** Uses one readline interface per prompt: between prompts, Ctrl-C is a signal again and questions can be shown. */
export function typedLines({ stdin, stderr, signal, turn, history }: Terminal, prompt: string): Lines {
	/** Lines that are not read yet: several may arrive at once. */
	const ahead: string[] = []
	let isOver = false

	async function next(): Promise<string | undefined> {
		if (ahead.length > 0 || isOver) return ahead.shift()
		const keys = promptKeys(stdin)
		const shown = history.entries.map((entry) => entry.replaceAll('\n', BREAK))
		const terminal = createInterface({ input: keys, output: stderr, terminal: true, history: shown, signal })
		stderr.write(MARK_PASTE)
		const { promise, resolve } = Promise.withResolvers<string | undefined>()
		/** The lines of the prompt before the current one. */
		let previous = ''
		const ask = (sign: string): void => {
			terminal.setPrompt(sign)
			terminal.prompt()
		}
		terminal.on('close', () => resolve(undefined))
		terminal.on('SIGINT', () => {
			if (previous === '' && terminal.line === '') return terminal.close()
			previous = ''
			terminal.write(null, { ctrl: true, name: 'e' })
			terminal.write(null, { ctrl: true, name: 'u' })
			ask(prompt)
		})
		terminal.on('line', (line) => {
			const continues = (/\\*$/.exec(line)?.[0].length ?? 0) % 2 === 1
			if (!continues) return resolve((previous + line).replaceAll(BREAK, '\n'))
			previous += `${line.slice(0, -1)}\n`
			ask('… ')
		})
		ask(prompt)
		const text = await promise
		terminal.close()
		keys.destroy()
		stderr.write(UNMARK_PASTE)
		if (text?.trim()) history.add(text)
		return text
	}

	/** Leaves showing and editing to the terminal's own line mode, so that Ctrl-C is a signal. */
	async function meanwhile(until: AbortSignal): Promise<string | undefined> {
		if (ahead.length > 0 || isOver || until.aborted) return until.aborted ? undefined : ahead.shift()
		const { promise, resolve } = Promise.withResolvers<void>()
		let reader: Interface | undefined
		let pasted: string[] = []
		let cancelDelivery = (): void => {}
		const deliver = (): void => {
			cancelDelivery()
			if (pasted.length === 0) return
			ahead.push(pasted.join('\n'))
			pasted = []
			resolve()
		}
		const pause = (): void => {
			const before = reader
			reader = undefined
			before?.close()
		}
		const resume = (): void => {
			const opened = createInterface({ input: stdin, terminal: false })
			reader = opened
			opened.on('line', (line) => {
				pasted.push(line)
				cancelDelivery()
				cancelDelivery = afterGap(PASTE_GAP_MS, deliver)
			})
			opened.on('close', () => {
				if (reader !== opened) return
				isOver = true // Ctrl-D
				deliver()
				resolve()
			})
		}
		const forget = onAbort(until, resolve)
		using _ = turn.read({ pause, resume })
		await promise
		forget()
		pause()
		deliver()
		return until.aborted ? undefined : ahead.shift()
	}

	return { next, meanwhile }
}

/** Lines of standard input that is not a terminal. Reads it from the first call on. */
export function pipedLines(stdin: NodeJS.ReadableStream, signal: AbortSignal): Lines {
	let lines: AsyncIterator<string> | undefined
	/** A line that was requested and is not delivered yet. */
	let pending: Promise<IteratorResult<string>> | undefined

	function ask(): Promise<IteratorResult<string>> {
		lines ??= createInterface({ input: stdin, signal })[Symbol.asyncIterator]()
		pending ??= lines.next()
		return pending
	}

	async function next(): Promise<string | undefined> {
		const { done, value } = await ask()
		pending = undefined
		return done === true ? undefined : value
	}

	async function meanwhile(until: AbortSignal): Promise<string | undefined> {
		if (until.aborted) return undefined
		const { promise, resolve } = Promise.withResolvers<'aborted'>()
		const forget = onAbort(until, () => resolve('aborted'))
		const first = await Promise.race([promise, ask()])
		forget()
		return first === 'aborted' ? undefined : await next()
	}

	return { next, meanwhile }
}
