/**
 * Bundles the pages of the console: writes `{files: {name: text}}` as JSON to standard output. A process of its own, since
 * esbuild's would stay for as long as this one. The first page is `app-….js`; the others are loaded when they are shown.
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
	// That of the folder is for the type checker, and extends one that an installed package has not.
	tsconfigRaw: {},
})
const files = Object.fromEntries(outputFiles.map(({ path, text }) => [path.slice(web.length), text]))
process.stdout.write(JSON.stringify({ files }), () => process.exit(0))
