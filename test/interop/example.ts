/** Type-checks and runs the example in the README of core/client. */
import { execFile } from 'node:child_process'
import assert from 'node:assert/strict'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Target } from './target.ts'

const execute = promisify(execFile)

/** Throws with the output of the compiler or the program. `library`: the folder of the built package. */
export async function runExample(library: string, { url, token }: Target): Promise<void> {
	const [, code = ''] = /```ts\n([^]*?)```/.exec(readFileSync(join(library, 'README.md'), 'utf8')) ?? []
	const file = join(library, 'example.ts')
	const options = { cwd: library, encoding: 'utf8', env: { ...process.env, SVC_URL: url, SVC_TOKEN: token } } as const
	try {
		// In the package's folder, where it can import itself by its name, through the exports of package.json as its users do.
		writeFileSync(file, code)
		const compiler = ['node_modules/typescript/bin/tsc', '--noEmit', '--strict', '--exactOptionalPropertyTypes']
		const types = [
			'--module',
			'nodenext',
			'--target',
			'es2024',
			'--lib',
			'es2024,dom,dom.asynciterable',
			'--types',
			'node',
		]
		await execute(process.execPath, [...compiler, ...types, 'example.ts'], options)
		const { stdout } = await execute(process.execPath, ['example.ts'], options)
		assert.match(stdout, /^was there before\nHello!\n/)
	} finally {
		rmSync(file, { force: true })
	}
}
