/**
 * Loaded before tap (test/batches/run.ts). To find the test that an error without a catcher belongs to, tap follows every promise with
 * async hooks, which costs up to a fifth of a file's time. Here tests run one after another: it is the one that runs.
 */
import { executionAsyncResource } from 'node:async_hooks'
import { registerHooks } from 'node:module'

registerHooks({
	resolve: (specifier, context, next) =>
		specifier === 'async-hook-domain' ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
})

/** tap's outermost test. */
let root

/** As async-hook-domain has it, as far as tap uses it. */
export class Domain {
	constructor() {
		if (root) return
		root = executionAsyncResource().test
		// Here, since threads and processes that merely inherit this file load no tap: their errors are their own.
		process.on('uncaughtException', blame)
		process.on('unhandledRejection', (error) => blame(error, 'unhandledRejection'))
	}

	destroy() {}
}

function blame(error, tapCaught) {
	let test = root
	for (let next = root; next; [next] = test.activeSubtests) test = next
	const shown = error !== null && typeof error === 'object' ? error : { error }
	test.threw(Object.assign(shown, { tapCaught }))
}
