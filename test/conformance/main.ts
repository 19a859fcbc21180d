/** The client scenarios of the official conformance suite against the engine of plugins/mcp. */
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url))
const suite = fileURLToPath(
	new URL('../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)

const child = spawn(
	process.execPath,
	[
		suite,
		'client',
		'--command',
		`"${process.execPath}" "${path('client.ts')}"`,
		'--suite',
		'all',
		'--expected-failures',
		path('expected-failures.yml'),
		...process.argv.slice(2),
	],
	{ stdio: 'inherit' },
)
child.on('exit', (code) => (process.exitCode = code ?? 1))
