/**
 * Bundles the pages of the console, and writes `{name: text}` as JSON to standard output. Runs in a separate process,
 * since esbuild's own process would stay as long as the gateway. `app-….js` is the frame; pages are loaded when they are shown.
 */
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const web = fileURLToPath(new URL('./web/', import.meta.url))
const { outputFiles } = await build({
	absWorkingDir: web,
	entryPoints: [
		{ in: 'main.ts', out: 'app' },
		{ in: 'app.css', out: 'app' },
	],
	entryNames: '[name]-[hash]',
	chunkNames: '[name]-[hash]',
	outdir: web,
	bundle: true,
	splitting: true,
	minify: true,
	write: false,
	format: 'esm',
	target: 'es2024',
	charset: 'utf8',
	legalComments: 'none',
	conditions: ['browser', 'production'],
	logLevel: 'silent',
	// Ignores tsconfig.json, which is for the type checker, and extends a file that an installed package does not have.
	tsconfigRaw: {},
})
const files = Object.fromEntries(outputFiles.map(({ path, text }) => [path.slice(web.length), text]))
process.stdout.write(JSON.stringify(files), () => process.exit(0))
