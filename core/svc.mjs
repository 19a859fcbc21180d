#!/usr/bin/env node
/**
 * The command `svc`. Runs on any Node from 20 on: it installs what is missing, and hands over to the pinned Node and
 * core/cli/main.ts. The user's folder, terminal and signals stay what they are.
 */
import { realpathSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { compileCache, pinnedNode, replaceBy } from './process/handover.mjs'
import { install } from './cli/launch/install.mjs'

await install('run')
// `npx svc` and npm's scripts find the pinned Node first: then there is no other Node to hand over to.
if (realpathSync(pinnedNode()) === realpathSync(process.execPath)) {
	module.enableCompileCache(compileCache)
	const { runnable } = await import('./cli/launch/bundle.mjs')
	const { start } = await import(pathToFileURL(await runnable('core/cli/main.ts')).href)
	await start()
} else {
	const self = fileURLToPath(import.meta.url)
	process.exit(await replaceBy(pinnedNode(), [self, ...process.argv.slice(2)], { cwd: process.cwd() }))
}
