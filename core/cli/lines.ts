/** Lines of a person or of a pipe, also while other work continues. */
import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import type { History, Lines } from './contract.ts'
import type { KeyboardTurn } from './keyboard-turn.ts'
import type { Sink } from './output.ts'
import { onAbort } from '../util/on-abort.ts'
import { BREAK, MARK_PASTE, promptKeys, UNMARK_PASTE } from './prompt-keys.ts'

/** What a command reads. */
export type LineSource = NodeJS.ReadableStream & { isTTY?: boolean }

/** Lines that come so soon after one another were pasted. */
const PASTE_GAP_MS = 30

interface Terminal {
	stdin: LineSource
	stderr: Sink
	signal: AbortSignal
	turn: KeyboardTurn
	history: History
}

/** One readline interface per prompt: in between, Ctrl-C is a signal again and other prompts can be shown. */
export function typedLines({ stdin, stderr, signal, turn, history }: Terminal, prompt: string): Lines {
	/** Several lines may come at once. */
	const ahead: string[] = []
	let isOver = false

	async function next(): Promise<string | undefined> {
		if (ahead.length > 0 || isOver) return ahead.shift()
		const keys = promptKeys(stdin)
		const shown = history.entries.map((entry) => entry.replaceAll('\n', BREAK))
		const terminal = createInterface({ input: keys, output: stderr, terminal: true, history: shown, signal })
		stderr.write(MARK_PASTE)
		const { promise, resolve } = Promise.withResolvers<string | undefined>()
		let begun = ''
		const ask = (sign: string): void => {
			terminal.setPrompt(sign)
			terminal.prompt()
		}
		terminal.on('close', () => resolve(undefined))
		terminal.on('SIGINT', () => {
			if (begun === '' && terminal.line === '') return terminal.close()
			begun = ''
			terminal.write(null, { ctrl: true, name: 'e' })
			terminal.write(null, { ctrl: true, name: 'u' })
			ask(prompt)
		})
		terminal.on('line', (line) => {
			const continues = (/\\*$/.exec(line)?.[0].length ?? 0) % 2 === 1
			if (!continues) return resolve((begun + line).replaceAll(BREAK, '\n'))
			begun += `${line.slice(0, -1)}\n`
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

	/** The terminal itself shows and edits what is typed, so that Ctrl-C is a signal. */
	async function meanwhile(until: AbortSignal): Promise<string | undefined> {
		if (ahead.length > 0 || isOver || until.aborted) return until.aborted ? undefined : ahead.shift()
		const { promise, resolve } = Promise.withResolvers<void>()
		let reader: Interface | undefined
		let pasted: string[] = []
		let gap: NodeJS.Timeout | undefined
		const deliver = (): void => {
			clearTimeout(gap)
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
				clearTimeout(gap)
				gap = setTimeout(deliver, PASTE_GAP_MS)
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

export function pipedLines(stdin: NodeJS.ReadableStream, signal: AbortSignal): Lines {
	let lines: AsyncIterator<string> | undefined
	/** Requested, and not delivered yet. */
	let coming: Promise<IteratorResult<string>> | undefined

	function ask(): Promise<IteratorResult<string>> {
		lines ??= createInterface({ input: stdin, signal })[Symbol.asyncIterator]()
		coming ??= lines.next()
		return coming
	}

	async function next(): Promise<string | undefined> {
		const { done, value } = await ask()
		coming = undefined
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
