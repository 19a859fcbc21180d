/**
 * `svc` for the shells of a page, executed in this process: starting Node for each of a hundred commands would take most of the time.
 * The program that the shells find sends its arguments and environment to a local port, and does not start Node.
 */
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { svcFor } from '../support/cli.ts'

export interface SvcHere extends AsyncDisposable {
	/** The source text of the program. */
	program: string
}

const root = fileURLToPath(new URL('../../', import.meta.url))
/** Marks the end of the words. No argument or variable has this value. */
const END = ':end:'

export async function openSvcHere(home: string): Promise<SvcHere> {
	const svc = svcFor({ home })
	const open = new Set<Socket>()
	const server = createServer((socket) => {
		open.add(socket.on('error', () => {}))
		const gone = new AbortController()
		socket.on('close', () => {
			open.delete(socket)
			gone.abort()
		})
		const answer = async (): Promise<string> => {
			const [pid = '', count = '', ...words] = await wordsOf(socket)
			const argv = words.slice(0, Number(count))
			const env = Object.fromEntries(words.slice(Number(count)).map((one) => one.split(/=(.*)/s, 2)))
			const input = standardInputOf(pid)
			const done = await svc(argv, { input, cwd: env.PWD ?? home, env, signal: gone.signal })
			return [done.code, done.stdout, done.stderr].map((one) => `${one}\0`).join('')
		}
		answer().then(
			(text) => socket.end(text),
			(error: unknown) => socket.end(`70\0\0${String(error)}\0`),
		)
	})
	server.listen(0, '127.0.0.1')
	await once(server, 'listening')
	const { port } = server.address() as AddressInfo
	return {
		program: `#!/bin/bash
case "$1" in start | events) exec ${process.execPath} ${root}core/svc.mjs "$@" ;; esac
exec 3<>/dev/tcp/127.0.0.1/${port} || exit 70
{
	printf '%s\\0' "$$" "$#" "$@"
	for name in $(compgen -e); do printf '%s\\0' "$name=\${!name}"; done
	printf '${END}\\0'
} >&3
for name in code out err; do IFS= read -r -d '' -u 3 "$name" || exit 70; done
printf '%s' "$out"
printf '%s' "$err" >&2
exit "$code"
`,
		async [Symbol.asyncDispose]() {
			for (const socket of open) socket.destroy()
			await new Promise((resolve) => server.close(resolve))
		},
	}
}

/** The words that the program sends, each terminated by a null character. */
async function wordsOf(socket: Socket): Promise<string[]> {
	let text = ''
	for await (const data of socket.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
		text += String(data)
		if (text.endsWith(`\0${END}\0`)) break
	}
	return text.split('\0').slice(0, -2)
}

/** The standard input of a process, read only on demand, since a command leaves unread input to the next one. */
async function* standardInputOf(pid: string): AsyncGenerator<Buffer> {
	yield* createReadStream(`/proc/${pid}/fd/0`) as AsyncIterable<Buffer>
}
