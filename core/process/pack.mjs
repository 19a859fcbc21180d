/**
 * `npm run pack`: makes the package, as a file to install or publish. It holds the sources, the bundle, and the types for
 * authors of plugins. (`npm pack` alone leaves the types to the sources; without a bundle in dist/ the first start of the
 * installed package makes one.) Arguments are those of `npm pack`.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { removeOldBundles, runnable } from './bundle.mjs'
import { root, run } from './handover.mjs'

const types = join(root, 'dist/types')
const tsc = join(root, 'node_modules/typescript/bin/tsc')
try {
	await runnable('core/main.ts')
	removeOldBundles(1)
	process.exitCode = await run(process.execPath, [tsc, '-p', 'tsconfig.types.json'])
	// npm runs on the Node that it came with.
	const npm = process.env.npm_execpath
	if (process.exitCode === 0)
		process.exitCode = await (npm
			? run(process.env.npm_node_execpath ?? process.execPath, [npm, ...args()])
			: run('npm', args()))
} finally {
	// In a clone the sources are the types.
	rmSync(types, { recursive: true, force: true })
}

function args() {
	return ['pack', ...process.argv.slice(2)]
}
