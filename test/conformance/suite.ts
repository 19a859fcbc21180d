/** Runs the official conformance suite in a separate process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
// In full, so that knip finds the use of the package.
const program = fileURLToPath(
	new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)

export interface Outcome {
	/** 0 if every scenario ended as expected. */
	code: number
	/** What the suite printed. */
	text: string
}

/** Runs all scenarios of one side, or those that `options` select. An expected failure that passes is a failure too. */
async function runSuite(side: 'client' | 'server', subject: string[], options: string[] = []): Promise<Outcome> {
	const selected = options.length > 0 ? options : ['--suite', 'all']
	const args = [program, side, ...subject, ...selected, '--expected-failures', path('expected-failures.yml')]
	const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
	let text = ''
	child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
	const [code] = (await once(child, 'close')) as [number | null]
	return { code: code ?? 1, text }
}

/** Tests the engine of plugins/mcp, with client.ts. */
export function runClientSuite(options?: string[]): Promise<Outcome> {
	return runSuite('client', ['--command', `"${process.execPath}" "${path('client.ts')}"`], options)
}

/** Tests plugins/mcp-server of the gateway at `url`. */
export function runServerSuite(url: string, options?: string[]): Promise<Outcome> {
	return runSuite('server', ['--url', `${url}/mcp`], options)
}
