/**
 * Loaded before tap (test/batches/run.ts). To find the test of an uncaught error, tap follows every promise with async hooks, which
 * costs up to a fifth of a file's time. Since our tests run one after another, the error belongs to the running test.
 */
import { executionAsyncResource } from 'node:async_hooks'
import { registerHooks } from 'node:module'

registerHooks({
	resolve: (specifier, context, next) =>
		specifier === 'async-hook-domain' ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
})

/** tap's outermost test. */
let root

/** The part of async-hook-domain's class that tap uses. */
export class Domain {
	constructor() {
		if (root) return
		root = executionAsyncResource().test
		// Only here, since threads and processes that merely inherit this file do not load tap.
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
