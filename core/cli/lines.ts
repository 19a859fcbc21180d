/** Lines of a person or of a pipe, also while something else goes on. */
import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import type { Lines } from './contract.ts'
import type { Floor } from './floor.ts'
import type { Sink } from './output.ts'

const HISTORY = 200

interface Terminal {
	stdin: NodeJS.ReadableStream
	stderr: Sink
	signal: AbortSignal
	floor: Floor
}

/** An interface for each line: in between, Ctrl-C is a signal again and others may ask. */
export function typedLines({ stdin, stderr, signal, floor }: Terminal, prompt: string): Lines {
	const history: string[] = []
	/** Several lines may come at once. */
	const ahead: string[] = []
	let isOver = false

	async function next(): Promise<string | undefined> {
		if (ahead.length > 0 || isOver) return ahead.shift()
		const terminal = createInterface({ input: stdin, output: stderr, terminal: true, history: [...history], signal })
		const { promise, resolve } = Promise.withResolvers<string | undefined>()
		terminal.on('close', () => resolve(undefined))
		terminal.on('SIGINT', () => terminal.close())
		terminal.on('line', resolve)
		terminal.setPrompt(prompt)
		terminal.prompt()
		const line = await promise
		terminal.close()
		if (line?.trim()) history.unshift(line)
		history.length = Math.min(history.length, HISTORY)
		return line
	}

	/** The terminal itself shows and edits what is typed, so that Ctrl-C is a signal. */
	async function meanwhile(until: AbortSignal): Promise<string | undefined> {
		if (ahead.length > 0 || isOver || until.aborted) return until.aborted ? undefined : ahead.shift()
		const { promise, resolve } = Promise.withResolvers<void>()
		let reader: Interface | undefined
		const rest = (): void => {
			const before = reader
			reader = undefined
			before?.close()
		}
		const goOn = (): void => {
			const opened = createInterface({ input: stdin, terminal: false })
			reader = opened
			opened.on('line', (line) => {
				ahead.push(line)
				resolve()
			})
			opened.on('close', () => {
				if (reader !== opened) return
				isOver = true // Ctrl-D
				resolve()
			})
		}
		const stop = (): void => resolve()
		until.addEventListener('abort', stop)
		using _ = floor.read({ rest, goOn })
		await promise
		until.removeEventListener('abort', stop)
		rest()
		return until.aborted ? undefined : ahead.shift()
	}

	return { next, meanwhile }
}

export function pipedLines(stdin: NodeJS.ReadableStream, signal: AbortSignal): Lines {
	let lines: AsyncIterator<string> | undefined
	/** Asked for, and not given to anybody yet. */
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
		const { promise, resolve } = Promise.withResolvers<'aborted'>()
		const stop = (): void => resolve('aborted')
		if (until.aborted) stop()
		until.addEventListener('abort', stop)
		const first = await Promise.race([promise, ask()])
		until.removeEventListener('abort', stop)
		return first === 'aborted' ? undefined : await next()
	}

	return { next, meanwhile }
}
