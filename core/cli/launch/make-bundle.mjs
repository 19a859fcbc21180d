/**
 * Builds the bundle with esbuild, see bundle.mjs: `node make-bundle.mjs FOLDER` writes its files into the folder, and the list of
 * its sources to standard output. In plain JavaScript, for Node 20 and newer.
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { isAbsolute, join, relative, sep } from 'node:path'
import { fileOf } from './bundle.mjs'
import { root } from '../../process/handover.mjs'

/**
 * Programs that are bundled together share their code. `eager`: the parts of plugins that each start of these programs loads,
 * in the order of their evaluation; `lazy`: those that are imported on first use. The gateway's start needs most of its code at
 * once, and the fewer programs share that code, the fewer files it is split into.
 *
 * `first`: the module whose code every start loads, kept in one file. Without it, esbuild splits off code that is imported again
 * later, and forty files take longer to load than one.
 */
const bundles = [
	{
		programs: ['core/main.ts'],
		first: 'core/cli/start/start-parts.ts',
		eager: ['settings', 'index', 'events'],
		lazy: ['migrations', 'engine'],
	},
	{
		programs: [
			'core/cli/main.ts',
			'core/cli/doctor/check-child.ts',
			'core/cli/doctor/plugin-child.ts',
			'core/cli/doctor/store-child.ts',
			'core/cli/plugin/check-child.ts',
			'test/contracts/testing.ts',
		],
		eager: [],
		lazy: ['index', 'settings', 'events', 'cli', 'doctor', 'migrations', 'engine', 'extended'],
	},
	{
		programs: ['sandbox/worker.ts', 'core/backup/pack-worker.ts', 'core/store/lmdb/copy-child.ts', ...pluginWorkers()],
		eager: [],
		lazy: [],
	},
]
const programs = bundles.flatMap((one) => one.programs)
/** Packages that every start loads. The others are imported from node_modules on first use. */
const packages = ['@hapi/boom', '@hapi/bourne', '@hapi/hapi', 'chokidar', 'commander', 'croner', 'joi', 'pino', 'yaml']
const seam = 'core/util/own-code.ts'
const places = 'core/cli/launch/source-places.mjs'

/** The worker threads of plugins, which are found by their file: `worker.ts`. */
function pluginWorkers() {
	const below = existsSync(join(root, 'plugins')) ? readdirSync(join(root, 'plugins'), { recursive: true }) : []
	const files = below.filter((file) => file.split(sep).at(-1) === 'worker.ts')
	return files.map((file) => `plugins/${file.replaceAll(sep, '/')}`).toSorted()
}

build(process.argv[2]).then(
	(sources) => process.stdout.write(JSON.stringify(sources), () => process.exit(0)),
	(error) => {
		process.stderr.write(`Error: ${error.errors?.[0]?.text ?? error.message}\n`)
		process.exit(1)
	},
)

/** Returns the sources of the bundle: `files` and `folders`, relative to the root. */
async function build(folder) {
	const esbuild = await import('esbuild')
	const results = await Promise.all(
		bundles.map(({ programs, first, eager, lazy }) =>
			esbuild.build({
				absWorkingDir: root,
				entryPoints: programs
					.filter((program) => existsSync(join(root, program)))
					.map((program) => ({ in: program, out: fileOf(program).slice(0, -'.js'.length) })),
				outdir: folder,
				chunkNames: 'chunk-[hash]',
				bundle: true,
				splitting: true,
				platform: 'node',
				format: 'esm',
				target: 'node24',
				charset: 'ascii', // V8 needs two bytes for each character of any other text
				minifyWhitespace: true,
				sourcemap: true,
				sourcesContent: false,
				inject: [join(root, places)],
				banner: {
					js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
				},
				metafile: true,
				logLevel: 'silent',
				plugins: [...(first ? [afterFirst(join(root, first))] : []), ownCode(eager, lazy), outside],
			}),
		),
	)
	const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs))
	const own = inputs.filter((file) => isOwn(join(root, file)) && existsSync(join(root, file)))
	const makers = ['bundle', 'make-bundle'].map((name) => `core/cli/launch/${name}.mjs`)
	return {
		files: [...new Set([...own, ...makers, 'package.json'])].toSorted(),
		folders: ['plugins', ...pluginFolders()],
	}
}

/** Keeps `import.meta.url` the address of the source, since code finds the files beside it that way. */
function ownCode(eager, lazy) {
	return {
		name: 'own code',
		setup(build) {
			build.onResolve({ filter: /^own:/ }, ({ path }) => ({ path: path.slice('own:'.length), namespace: 'own' }))
			build.onLoad({ filter: /./, namespace: 'own' }, ({ path }) => ({
				contents: filesOf(path)
					.map((file, at) => `export * as file${at} from './${file}'`)
					.join('\n'),
				resolveDir: root,
			}))
			build.onLoad({ filter: /\.(ts|mjs|js)$/ }, ({ path }) => {
				const file = relative(root, path).replaceAll(sep, '/')
				if (!isOwn(path) || file === places) return undefined
				const text = file === seam ? table(eager, lazy) : readFileSync(path, 'utf8')
				const url = `new URL(${JSON.stringify(`../../${file}`)}, import.meta.url).href`
				return {
					contents: file === seam ? text : text.replaceAll('import.meta.url', url),
					loader: file.endsWith('.ts') ? 'ts' : 'js',
				}
			})
		},
	}
}

/** Makes every file that is imported later import all of `first`, so that esbuild has no reason to divide `first`. */
function afterFirst(first) {
	return {
		name: 'loaded first',
		setup(build) {
			build.onResolve({ filter: /^[.]|^own:/ }, async ({ path: asked, kind, ...rest }) => {
				if (kind !== 'dynamic-import' || rest.namespace === 'later') return undefined
				const found = await build.resolve(asked, { ...rest, kind: 'import-statement' })
				if (found.external || found.path === first) return undefined
				// Relative, since source maps contain it: the same sources make the same files in any folder.
				const file = `./${relative(root, found.path).replaceAll(sep, '/')}`
				return { path: found.namespace === 'own' ? asked : file, namespace: 'later' }
			})
			build.onLoad({ filter: /./, namespace: 'later' }, ({ path: later }) => ({
				contents: [
					`import ${JSON.stringify(first)}`,
					`import * as all from ${JSON.stringify(later)}`,
					`export * from ${JSON.stringify(later)}`,
					'export default all.default',
				].join('\n'),
				resolveDir: root,
			}))
		},
	}
}

/**
 * Replaces own-code.ts. It contains only functions, no constants, since plugins and this file import each other: a file that is
 * evaluated before this one can then call them, if the parts that it needs come first in `eager`.
 */
function table(eager, lazy) {
	const entry = (part, module) =>
		filesOf(part).map((file, at) => `${JSON.stringify(file)}: async () => (${module}).file${at}`)
	const modules = [
		...eager.flatMap((part) => entry(part, part)),
		...lazy.flatMap((part) => entry(part, `await import('own:${part}')`)),
	]
	return `
		${eager.map((part) => `import * as ${part} from 'own:${part}'`).join('\n')}
		export function importOwn(file) {
			const modules = {${modules.join(',\n')}}
			return (modules[nameOf(file)] ?? (() => import(file.href)))()
		}
		export function programOf(file) {
			const programs = ${JSON.stringify(Object.fromEntries(programs.map((one) => [one, fileOf(one)])))}
			return new URL(programs[nameOf(file)] ?? file.href, import.meta.url)
		}
		function nameOf({ href }) {
			const root = new URL('../../', import.meta.url).href
			return href.startsWith(root) ? href.slice(root.length) : ''
		}`
}

const outside = {
	name: 'packages from node_modules',
	setup(build) {
		// import() of a CommonJS package would only have the default export.
		build.onLoad({ filter: /./, namespace: 'whole' }, async ({ path }) => {
			const names = Object.keys(await import(path)).filter((name) => name !== 'default' && name !== 'module.exports')
			const contents = [
				`import * as all from ${JSON.stringify(path)}`,
				`export default all.default`,
				...names.map((name) => `export const ${name} = all.${name}`),
			]
			return { contents: contents.join('\n'), resolveDir: root }
		})
		build.onResolve({ filter: /^[^./]/ }, ({ path, importer, kind, namespace }) => {
			// The imports of a bundled package are bundled as well.
			if (path.startsWith('node:') || isAbsolute(path) || (isAbsolute(importer) && !isOwn(importer))) return undefined
			const name = /^(?:@[^/]+\/)?[^/]+/.exec(path)[0]
			if (!packages.includes(name)) return { path, external: true }
			return kind === 'dynamic-import' && namespace !== 'whole' ? { path, namespace: 'whole' } : undefined
		})
	},
}

/** Whether a file is the gateway's, not a package's. An installed gateway is in a folder `node_modules` itself, with the packages beside it. */
function isOwn(path) {
	const file = relative(root, path)
	return !file.startsWith('..') && !isAbsolute(file) && !file.split(sep).includes('node_modules')
}

function pluginFolders() {
	return readdirSync(join(root, 'plugins'), { withFileTypes: true })
		.filter((one) => one.isDirectory())
		.map(({ name }) => `plugins/${name}`)
		.toSorted()
}

/** The files of a part of plugins, which are loaded together: one file of the bundle for all of them. */
function filesOf(part) {
	const files = pluginFolders().map((folder) => `${folder}/${part}.ts`)
	return (part === 'cli' ? ['core/cli/commands.ts', ...files] : files).filter((file) => existsSync(join(root, file)))
}
