/**
 * Runs the test files of one batch, named by the argument, one after another in this process: starting Node and loading the
 * gateway takes longer than most of the files. Each file also runs alone: `node test/spec/agents.test.ts`.
 */
import { registerHooks } from 'node:module'
import t from 'tap'
import type { Test } from 'tap'
import { batches, filesOf, root } from './table.ts'

const FILE_TIMEOUT_MS = 600_000
/** For resources that the tests leave open, after the last one. */
const END_TIMEOUT_MS = 60_000
const tests = new Map<string, Test>()
/** The global under which the modules below find the test of their file. */
const key = 'svc.test-of-file'
Object.assign(globalThis, { [key]: tests })

// Each file's `import t from 'tap'` is a separate subtest, so that its teardowns run before the next file begins.
registerHooks({
	resolve(specifier, context, next) {
		if (specifier !== 'tap' || !context.parentURL || !tests.has(context.parentURL)) return next(specifier, context)
		const text = `export default globalThis[${JSON.stringify(key)}].get(${JSON.stringify(context.parentURL)})`
		return { url: `data:text/javascript,${encodeURIComponent(text)}`, shortCircuit: true }
	},
})

// In the order of their names.
for (const path of filesOf(batches[process.argv[2] ?? ''] ?? []))
	await t.test(path, { timeout: FILE_TIMEOUT_MS }, async (sub) => {
		const { href } = new URL(path, root)
		tests.set(href, sub)
		await import(href)
	})

// Resources that a failed test left open would keep this process alive until it times out.
setTimeout(() => {
	console.error(`still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`)
	process.exit(1)
}, END_TIMEOUT_MS).unref()
