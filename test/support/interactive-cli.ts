/** `svc` in this process, against a running gateway, with its output and optionally a person at a terminal. */
import { PassThrough, Readable, Writable } from 'node:stream'
import { main } from '../../core/cli/main.ts'
import type { Answer } from './gateway.ts'

export interface InteractiveResult {
	code: number
	out: string
	err: string
	/** Standard output, parsed. */
	json: Answer
}

export interface InteractiveOptions {
	/** Piped to standard input. */
	stdin?: string | Buffer
	/** A person at a terminal: the keys to press for each question on standard error. All questions must appear, in this order. */
	person?: [question: string, keys: string][]
	/** Called with the text of standard error since the last question. */
	hears?: (text: string) => void
	env?: Record<string, string>
	cwd?: string
}

export type InteractiveSvc = (argv: string[], options?: InteractiveOptions) => Promise<InteractiveResult>

export function interactiveSvc(url: string): InteractiveSvc {
	return async (argv, { stdin = '', person, hears, env = {}, cwd = process.cwd() } = {}) => {
		const stdout = new Sink(false)
		const keyboard = new Keyboard()
		const questions = [...(person ?? [])]
		const stderr = new Sink(person !== undefined, (text) => {
			hears?.(text)
			const [next] = questions
			if (next === undefined || !text.includes(next[0])) return
			questions.shift()
			stderr.seen = ''
			// The prompt is printed before it listens for keys.
			setImmediate(() => keyboard.write(next[1]))
		})
		const code = await main(argv, {
			env: { SVC_URL: url, NO_COLOR: '1', ...env },
			cwd,
			stdin: person ? keyboard : Readable.from(stdin.length === 0 ? [] : [Buffer.from(stdin)]),
			stdout,
			stderr,
			signal: new AbortController().signal,
		})
		if (questions.length > 0) throw new Error(`svc did not ask "${questions[0]?.[0]}": ${stdout.text}${stderr.text}`)
		return {
			code,
			out: stdout.text,
			err: stderr.text,
			get json() {
				return JSON.parse(stdout.text)
			},
		}
	}
}

class Sink extends Writable {
	text = ''
	/** Since the last question. */
	seen = ''
	readonly isTTY: boolean
	readonly columns = 200
	readonly #hear: (text: string) => void
	constructor(isTTY: boolean, hear: (text: string) => void = () => {}) {
		super()
		this.isTTY = isTTY
		this.#hear = hear
	}
	override _write(chunk: Buffer, _encoding: string, done: () => void): void {
		this.text += String(chunk)
		this.seen += String(chunk)
		this.#hear(this.seen)
		done()
	}
}

class Keyboard extends PassThrough {
	readonly isTTY = true
	setRawMode(): this {
		return this
	}
}
