/**
 * What a skill host runs, as one text for its standard input. Each of its files is stripped of types here, once: a process
 * that did that by itself would take 100 ms of computing and 25 MiB more at each start, and would have to read the files.
 */
import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'

/** Those that skill-host.ts needs, from the root of the product. */
const files = [
	'core/host-protocol.ts',
	'sandbox/skill-host.ts',
	'sandbox/isolate.ts',
	'sandbox/bridge.ts',
	'sandbox/globals.ts',
	'sandbox/urls.ts',
	'sandbox/host-tools.ts',
	'sandbox/strip.ts',
	'sandbox/watch-myself.ts',
]
const root = new URL('../../', import.meta.url)

/** Strips in a thread that is gone afterwards, with the compiler that it loads. */
const stripper = `
	const { parentPort, workerData } = require('node:worker_threads')
	const { stripTypeScriptTypes } = require('node:module')
	parentPort.postMessage(workerData.map((text) => stripTypeScriptTypes(text)))`

/** A module: it answers the loader's questions for these files, then loads the first of all. */
export async function hostProgram(): Promise<string> {
	const urls = files.map((file) => new URL(file, root))
	const texts = await Promise.all(urls.map((url) => readFile(url, 'utf8')))
	const worker = new Worker(stripper, { eval: true, workerData: texts, execArgv: ['--no-warnings'] })
	const stripped = await new Promise<string[]>((resolve, reject) => {
		worker.once('message', resolve)
		worker.once('error', reject)
		worker.once('exit', (code) => reject(new Error(`the thread that strips types ended with code ${code}`)))
	})
	const sources = Object.fromEntries(urls.map(({ href }, at) => [href, stripped[at]]))
	return `
		import { registerHooks } from 'node:module'
		const sources = ${JSON.stringify(sources)}
		registerHooks({
			resolve(name, context, next) {
				const url = URL.parse(name, context.parentURL)?.href
				return url in sources ? { url, format: 'module', shortCircuit: true } : next(name, context)
			},
			load(url, context, next) {
				return url in sources ? { format: 'module', source: sources[url], shortCircuit: true } : next(url, context)
			},
		})
		await import(${JSON.stringify(new URL('sandbox/skill-host.ts', root).href)})`
}
