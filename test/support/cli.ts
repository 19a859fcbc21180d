/** `svc` in this process, against a running gateway or a home. */
import { PassThrough, Readable } from 'node:stream'
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

/** Returns a function that calls `svc` without a terminal, so it cannot prompt. Without `url`, the address is read from the home. */
export function svcFor({ home, url, token }: { home: string; url?: string; token?: string }): Svc {
	return async (argv, { input = '', cwd = home, env = {}, signal, onOutput } = {}) => {
		let all = ''
		const collect = (): { sink: PassThrough; text(): string } => {
			let text = ''
			const sink = new PassThrough()
			sink.on('data', (data: Buffer) => {
				text += data.toString()
				all += data.toString()
				onOutput?.(all)
			})
			return { sink, text: () => text }
		}
		const stdout = collect()
		const stderr = collect()
		const io: Io = {
			env: {
				HOME: home,
				SVC_HOME: home,
				...(url !== undefined && { SVC_URL: url }),
				...(token !== undefined && { SVC_TOKEN: token }),
				...env,
			},
			cwd,
			stdin: Readable.from(typeof input !== 'string' ? input : input === '' ? [] : [Buffer.from(input)]),
			stdout: stdout.sink,
			stderr: stderr.sink,
			signal: signal ?? new AbortController().signal,
		}
		const code = await main(argv, io)
		await Promise.all([stdout, stderr].map(({ sink }) => new Promise((done) => sink.end(done))))
		return { code, stdout: stdout.text(), stderr: stderr.text(), json: () => JSON.parse(stdout.text()) as Answer }
	}
}
