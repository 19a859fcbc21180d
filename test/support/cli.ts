/** `svc` in this process, against a running gateway or a home, without a terminal or with a person at one. */
import { PassThrough, Readable, Writable } from 'node:stream'
import { main } from '../../core/cli/main.ts'
import type { Io } from '../../core/cli/main.ts'
import type { Answer } from './gateway.ts'

export interface CliResult {
	/** The exit code. */
	code: number
	stdout: string
	stderr: string
	/** Standard output as JSON. */
	json(): Answer
}

export interface CliOptions {
	/** Standard input; empty by default. An iterable is read only if the command reads. */
	input?: string | AsyncIterable<Buffer>
	/**
	 * A person at a terminal: the keys to press for each question on standard error. All questions must appear, in this order. Without,
	 * there is no terminal, so svc cannot prompt.
	 */
	person?: [question: string, keys: string][]
	/** The working directory. */
	cwd?: string
	/** Additional variables; the environment of this process is not passed on. */
	env?: NodeJS.ProcessEnv
	/** Aborts as Ctrl-C does. */
	signal?: AbortSignal
	/** Called after each write to either output, with everything written to both so far. */
	onOutput?: (text: string) => void
}

export type Svc = (argv: string[], options?: CliOptions) => Promise<CliResult>

/** Returns a function that calls `svc`. Without `url`, the address is read from the home. */
export function svcFor({ home, url, token }: { home: string; url?: string; token?: string }): Svc {
	return async (argv, { input = '', person, cwd = home, env = {}, signal, onOutput } = {}) => {
		const piped = Readable.from(typeof input !== 'string' ? input : input === '' ? [] : [Buffer.from(input)])
		const keyboard = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => keyboard })
		const questions = [...(person ?? [])]
		const texts = { stdout: '', stderr: '' }
		let all = ''
		let sinceQuestion = ''
		const sink = (name: keyof typeof texts): Writable =>
			new Writable({
				write(chunk: Buffer, _encoding, done) {
					const text = chunk.toString()
					texts[name] += text
					all += text
					if (name === 'stderr') {
						sinceQuestion += text
						answer()
					}
					onOutput?.(all)
					done()
				},
			})
		const answer = (): void => {
			const [next] = questions
			if (next === undefined || !sinceQuestion.includes(next[0])) return
			questions.shift()
			sinceQuestion = ''
			// The prompt is printed before it listens for keys.
			setImmediate(() => keyboard.write(next[1]))
		}
		const io: Io = {
			env: {
				HOME: home,
				SVC_HOME: home,
				...(url !== undefined && { SVC_URL: url }),
				...(token !== undefined && { SVC_TOKEN: token }),
				...(person && { NO_COLOR: '1' }),
				...env,
			},
			cwd,
			stdin: person ? keyboard : piped,
			stdout: sink('stdout'),
			stderr: Object.assign(sink('stderr'), person && { isTTY: true, columns: 200 }),
			signal: signal ?? new AbortController().signal,
		}
		const code = await main(argv, io)
		if (questions.length > 0) throw new Error(`svc did not ask "${questions[0]?.[0]}": ${all}`)
		return { code, ...texts, json: () => JSON.parse(texts.stdout) as Answer }
	}
}
