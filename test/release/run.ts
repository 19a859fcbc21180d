import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { Refused } from './refused.ts'

const run = promisify(execFile)
const MAX_OUTPUT = 64 * 1024 * 1024

export function say(line: string): void {
	process.stdout.write(`${line}\n`)
}

/** Runs git. Returns its output without the final line break. */
export function git(folder: string, ...args: string[]): string {
	return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trimEnd()
}

/** Runs a command. Returns its standard output. If it fails, throws `Refused` with the last 20 lines of its output. */
export async function output(
	folder: string,
	[file = '', ...args]: readonly string[],
	env: NodeJS.ProcessEnv = {},
): Promise<string> {
	const options = { cwd: folder, env: { ...process.env, ...env }, maxBuffer: MAX_OUTPUT }
	try {
		return (await run(file, args, options)).stdout
	} catch (error) {
		const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string }
		const shown = `${stdout}${stderr}`.trim().split('\n').slice(-20).join('\n')
		throw new Refused(`${[file, ...args].join(' ')} failed:\n${shown || message}`)
	}
}
