/** The official conformance suite as a program of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const program = fileURLToPath(
	new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)

export interface Outcome {
	/** 0 where every scenario ended as it should. */
	code: number
	/** What the suite printed. */
	text: string
}

/** All scenarios of one side, or what `options` choose. A known failure that has gone is a failure too. */
async function runSuite(side: 'client' | 'server', subject: string[], options: string[] = []): Promise<Outcome> {
	const chosen = options.length > 0 ? options : ['--suite', 'all']
	const args = [program, side, ...subject, ...chosen, '--expected-failures', path('expected-failures.yml')]
	const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
	let text = ''
	child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
	const [code] = (await once(child, 'close')) as [number | null]
	return { code: code ?? 1, text }
}

/** The engine of plugins/mcp, by the program next to this one. */
export function runClientSuite(options?: string[]): Promise<Outcome> {
	return runSuite('client', ['--command', `"${process.execPath}" "${path('client.ts')}"`], options)
}

/** The gateway of plugins/mcp-server at `url`. */
export function runServerSuite(url: string, options?: string[]): Promise<Outcome> {
	return runSuite('server', ['--url', `${url}/mcp`], options)
}
