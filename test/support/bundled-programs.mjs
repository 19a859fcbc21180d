/**
 * Loaded into every test process (test/batches/run.ts). Threads and processes that the code under test starts run from the bundle, as
 * in an installed gateway: that takes less CPU time than a start from the sources.
 */
import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { isMainThread } from 'node:worker_threads'
import { fileOf, runnable } from '../../core/cli/launch/bundle.mjs'

// This module replaces core/util/own-code.ts, as in the bundle.
export { importOwn } from '../../core/util/own-code.ts'

const root = new URL('../../', import.meta.url).href
/** The folder of the bundle. Undefined in threads that only inherit this file: they start no others. */
let folder

if (isMainThread && process.env.SVC_TEST_SOURCES !== '1') {
	folder = new URL('./', pathToFileURL(await runnable('core/main.ts')))
	registerHooks({
		resolve: (specifier, context, next) =>
			specifier.endsWith('/own-code.ts') ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
	})
}

export function programOf(file) {
	const bundled = new URL(fileOf(file.href.slice(root.length)), folder)
	return existsSync(bundled) ? bundled : file
}
