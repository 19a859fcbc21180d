/**
 * Runs the test files of one batch, named by the argument, one after another in this process: starting Node and loading the
 * gateway takes longer than most of the files. Each file also runs alone: `node test/spec/agents.test.ts`.
 */
import { registerHooks } from 'node:module'
import t from 'tap'
import type { Test } from 'tap'
import { batches, filesOf, root } from './table.ts'

const FILE_TIMEOUT_MS = 600_000
/** For what the tests leave open, once the last one is over. */
const END_TIMEOUT_MS = 60_000
const tests = new Map<string, Test>()
/** Where the modules made below find their file's test. */
const key = 'svc.test-of-file'
Object.assign(globalThis, { [key]: tests })

// Each file's `import t from 'tap'` is a subtest of its own: what it hangs on `t` is given back before the next file begins.
registerHooks({
	resolve(specifier, context, next) {
		if (specifier !== 'tap' || !context.parentURL || !tests.has(context.parentURL)) return next(specifier, context)
		const text = `export default globalThis[${JSON.stringify(key)}].get(${JSON.stringify(context.parentURL)})`
		return { url: `data:text/javascript,${encodeURIComponent(text)}`, shortCircuit: true }
	},
})

/** In the order of their names. */
for (const path of filesOf(batches[process.argv[2] ?? ''] ?? []))
	await t.test(path, { timeout: FILE_TIMEOUT_MS }, async (sub) => {
		const { href } = new URL(path, root)
		tests.set(href, sub)
		await import(href)
	})

// What a failed test left open would hold this process until it times out.
setTimeout(() => {
	console.error(`still open after the last test: ${process.getActiveResourcesInfo().join(', ')}`)
	process.exit(1)
}, END_TIMEOUT_MS).unref()
