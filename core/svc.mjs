#!/usr/bin/env node
/**
 * The command `svc`. Runs on Node 20 and newer: installs missing packages, then hands over to core/cli/main.ts on the pinned
 * Node, which keeps the working directory, the terminal and the signals.
 */
import { realpathSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compileCache, pinnedNode, replaceBy } from './process/handover.mjs'
import { install } from './cli/launch/install.mjs'

await install('run')
// `npx svc` and npm's scripts already run on the pinned Node.
if (realpathSync(pinnedNode()) === realpathSync(process.execPath)) {
	module.enableCompileCache(compileCache)
	const { runnable } = await import('./cli/launch/bundle.mjs')
	const { start } = await import(pathToFileURL(await runnable('core/cli/main.ts')).href)
	await start()
} else {
	const self = fileURLToPath(import.meta.url)
	process.exit(await replaceBy(pinnedNode(), [self, ...process.argv.slice(2)], { cwd: process.cwd() }))
}
