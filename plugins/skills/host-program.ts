/**
 * The code of a skill host, as one text for its standard input. Types are stripped here, once: otherwise each process would need
 * access to the files, and another 100 ms of CPU time and 25 MiB at its start.
 */
import { readFile } from 'node:fs/promises'
import { Worker } from 'node:worker_threads'
import { once } from '../shared/once.ts'

/** The files that skill-host.ts needs, relative to the product's root. */
const files = [
	'sandbox/host-protocol.ts',
	'sandbox/skill-host.ts',
	'sandbox/isolate.ts',
	'sandbox/bridge.ts',
	'sandbox/globals.ts',
	'sandbox/urls.ts',
	'sandbox/host-tools.ts',
]
const root = new URL('../../', import.meta.url)

/** Strips types in a thread, whose end frees the compiler's memory. */
const stripper = `
	const { parentPort, workerData } = require('node:worker_threads')
	const { stripTypeScriptTypes } = require('node:module')
	parentPort.postMessage(workerData.map((text) => stripTypeScriptTypes(text)))`

/** A module that provides these files to the loader, and then imports skill-host.ts. */
export const hostProgram = once(async (): Promise<string> => {
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
})
