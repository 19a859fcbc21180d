/**
 * `svc` for the shells of a page, done by this process: a start of Node for each of a hundred commands would take most of
 * the time. The program that shells find leaves its arguments and environment in a folder and asks at a socket.
 */
import { once } from 'node:events'
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { svcFor } from '../support/cli.ts'

export interface SvcHere extends AsyncDisposable {
	/** The text of the program. */
	program: string
}

const root = fileURLToPath(new URL('../../', import.meta.url))

export async function openSvcHere(home: string): Promise<SvcHere> {
	const folder = mkdtempSync(join(tmpdir(), 'svc-docs-svc-'))
	const socket = join(folder, 'socket')
	const svc = svcFor({ home })
	const leaving = new AbortController()
	const server = createServer((request, response) => {
		const answer = async (): Promise<void> => {
			const place = decodeURIComponent(request.url ?? '')
			const wordsOf = (name: string): string[] => readFileSync(join(place, name), 'utf8').split('\0').slice(0, -1)
			const env = Object.fromEntries(wordsOf('env').map((one) => one.split(/=(.*)/s, 2)))
			const [pid = ''] = wordsOf('pid')
			const input = standardInputOf(pid)
			const done = await svc(wordsOf('argv'), { input, cwd: env.PWD ?? home, env, signal: leaving.signal })
			for (const name of ['stdout', 'stderr'] as const) writeFileSync(join(place, name), done[name])
			writeFileSync(join(place, 'code'), String(done.code))
		}
		answer().then(
			() => response.end(),
			(error: unknown) => response.writeHead(500).end(String(error)),
		)
	})
	server.listen(socket)
	await once(server, 'listening')
	return {
		program: `#!/bin/bash
case "$1" in start | events) exec ${process.execPath} ${root}core/svc.mjs "$@" ;; esac
place=$(mktemp -d ${folder}/XXXXXX)
for word in "$@"; do printf '%s\\0' "$word"; done > "$place/argv"
env -0 > "$place/env"
printf '%s\\0' "$$" > "$place/pid"
curl -sS --unix-socket ${socket} "http://svc$place" < /dev/null || exit 70
cat "$place/stdout"
cat "$place/stderr" >&2
exit "$(cat "$place/code")"
`,
		async [Symbol.asyncDispose]() {
			leaving.abort()
			server.closeAllConnections()
			await new Promise((resolve) => server.close(resolve))
			rmSync(folder, { recursive: true, force: true })
		},
	}
}

/** What a process would read, once somebody asks for it: commands leave to the next one what they do not read. */
async function* standardInputOf(pid: string): AsyncGenerator<Buffer> {
	yield* createReadStream(`/proc/${pid}/fd/0`) as AsyncIterable<Buffer>
}
