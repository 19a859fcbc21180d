/**
 * `npm run pack`: builds the package as a file to install or publish. It contains the sources, the bundle, and the types for
 * authors of plugins. (A package of `npm pack` alone has no types but the sources, and builds a missing bundle at its first
 * start.) Arguments are those of `npm pack`.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { runnable } from './bundle.mjs'
import { npm } from './install.mjs'
import { root, run } from '../../process/handover.mjs'

// A separate folder: in the clone, other processes could read half-written types.
const stage = mkdtempSync(join(tmpdir(), 'svc-pack-'))
try {
	const bundle = basename(dirname(await runnable('core/main.ts')))
	// The package of a commit is the same each time: without the process id and the times of files.
	const made = JSON.parse(readFileSync(join(root, 'dist/current.json'), 'utf8'))
	const folder = `0-${made.digest.slice(0, 16)}`
	mkdirSync(join(stage, 'dist'))
	writeFileSync(join(stage, 'dist/current.json'), JSON.stringify({ ...made, folder, states: '' }))
	cpSync(join(root, 'dist', bundle), join(stage, 'dist', folder), { recursive: true })
	const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
	const whole = files.filter((file) => file !== 'dist' && !/[!*]/.test(file))
	for (const file of [...whole, 'package.json', 'README.md', 'LICENSE'])
		cpSync(join(root, file), join(stage, file), { recursive: true })
	const tsc = join(root, 'node_modules/typescript/bin/tsc')
	// `npm run check` has checked the sources; skipping that halves the time.
	const types = ['-p', 'tsconfig.types.json', '--noCheck', '--outDir', join(stage, 'dist/types')]
	process.exitCode = await run(process.execPath, [tsc, ...types])
	if (process.exitCode === 0)
		process.exitCode = await npm(['pack', '--pack-destination', root, ...process.argv.slice(2)], { cwd: stage })
} finally {
	rmSync(stage, { recursive: true, force: true })
}
