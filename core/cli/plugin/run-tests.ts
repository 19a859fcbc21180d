/** `svc plugins test`: runs the tests of a plugin's folder with the gateway's own Node. */
import { spawn } from 'node:child_process'
import { compileCache } from '../../process/handover.mjs'
import { CliError } from '../contract.ts'
import type { Cli } from '../contract.ts'
import { linkGateway } from './link-gateway.ts'

/** Variables that a test runner sets for its child processes; with them, Node would report to that runner. */
const ofRunners = /^(NODE_TEST_CONTEXT|NODE_OPTIONS|NODE_CHANNEL_FD|TAP.*)$/

/** Runs the test files below the folder, such as `*.test.ts`, and shows their output. Throws a `CliError` (failed) if one fails. */
export async function runTests({ env, out, signal }: Cli, folder: string): Promise<void> {
	linkGateway(folder)
	const child = spawn(process.execPath, ['--test', '--test-reporter=spec'], {
		cwd: folder,
		env: {
			NODE_COMPILE_CACHE: compileCache,
			...Object.fromEntries(Object.entries(env).filter(([name]) => !ofRunners.test(name))),
		},
		stdio: ['ignore', 'pipe', 'pipe'],
		signal,
	})
	const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
	let tests = 0
	for (const stream of [child.stdout, child.stderr]) {
		stream.setEncoding('utf8').on('data', (text: string) => {
			tests = Number(/^ℹ tests (\d+)/m.exec(text)?.[1] ?? tests)
			out.write(text)
		})
	}
	const code = await ended
	if (code !== 0) throw new CliError('failed', `the tests in ${folder} fail`)
	if (tests === 0) throw new CliError('failed', `there are no tests in ${folder}; add a file such as index.test.ts`)
	out.answer({ folder, tests, passed: true }, (_, style) => style.good('All tests pass.'))
}
