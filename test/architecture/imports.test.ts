/** Imports between files, folders and layers. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../../', import.meta.url))
// core/client is a separate package, which imports nothing of the gateway.
const files = globSync('{core,config,plugins,sandbox}/**/*.{ts,mjs}', { cwd: root, exclude: ['core/client/**'] })
const clientFiles = globSync('core/client/*.ts', { cwd: root })

/** Features that core must not contain; `backup`, `events` and `runs` are folders. */
const FEATURES =
	/\b(vault|skills?|memor(y|ies)|mcp|sub-?agents?|heartbeats?|webhooks?|channels?|telegram|discord|metrics|tracing|openai|chat|nats|jetstream|cluster)\b/i

/** The beginnings of lines that only seem to name a feature, or that name a field of the API. */
const exceptions = [
	'config/core-sections.ts: const legacy = section(', // a description: the second address serves the chat API
	'config/core-sections.ts: port: count(0, 65535, 17890',
	'config/fields.ts: export function heartbeat()', // the comment of an idle event stream
	'config/first-start.ts: export const homeFolders', // the folders of a home
	'core/process/shared-home.ts: const parts =',
	'core/main.ts: process.channel?.unref()', // Node's own
	'core/redactor/ordinary.ts:', // words that are not secrets
]

/** The files of other folders that a layer may import, types included. The first layer that matches a file counts. */
const layers: { of: RegExp; mayImport: RegExp }[] = [
	{ of: /^config\//, mayImport: /^core\/(errors\.ts$|util\/)/ },
	{ of: /^core\//, mayImport: /^(core|config)\// },
	{ of: /^sandbox\//, mayImport: /^core\/((protocol|errors)\.ts$|util\/)/ },
	{ of: /^plugins\/types\.ts$/, mayImport: /./ },
	{ of: /^plugins\/shared\//, mayImport: /^(core\/|sandbox\/provider-kinds\.ts$)/ },
	{
		of: /^plugins\/[^/]+\/settings\.ts$/,
		mayImport:
			/^(core\/|config\/|sandbox\/(order|provider-kinds)\.ts$|plugins\/([^/]+\/(contract|adapter)\.ts$|shared\/))/,
	},
	{
		of: /^plugins\/[^/]+\/cli(\.ts$|\/)/,
		mayImport: /^(core\/|config\/|plugins\/([^/]+\/(contract|adapter)\.ts$|shared\/))/,
	},
	{
		of: /^plugins\//,
		mayImport:
			/^(core\/|config\/suggest\.ts$|sandbox\/(order|provider-kinds|host-protocol|text-type|wire-name|form\/check-json)\.ts$|sandbox\/context\/|plugins\/([^/]+\/(contract|adapter)\.ts$|shared\/))/,
	},
]

/** Relative imports by file, including those of types. */
const imports = new Map(files.map((file) => [file, importsOf(file)]))

void t.test('files have no import cycle', (t) => {
	t.strictSame(cyclesIn(imports), [])
	t.end()
})

void t.test('folders of core and of plugins have no import cycle', (t) => {
	const folders = new Map<string, Set<string>>()
	for (const [file, targets] of imports) {
		const own = folders.get(folderOf(file)) ?? new Set()
		folders.set(folderOf(file), own)
		for (const target of targets) if (folderOf(target) !== folderOf(file)) own.add(folderOf(target))
	}
	t.ok(folders.has('core/host') && folders.has('plugins/runs'))
	t.strictSame(cyclesIn(folders), [])
	t.end()
})

void t.test('the gateway imports no package that only its development needs', (t) => {
	const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<
		'dependencies' | 'optionalDependencies',
		Record<string, string>
	>
	const installed = new Set(Object.keys({ ...dependencies, ...optionalDependencies }))
	// Templates of plugins import the gateway's package.
	const own = files.filter((file) => !file.includes('/template/'))
	const edges = own.flatMap((file) => packagesOf(file).map((name) => [file, name] as const))
	t.ok(edges.some(([, name]) => name === 'openai') && edges.some(([, name]) => name === '@hapi/hapi'))
	const missing = edges.filter(([, name]) => !installed.has(name)).map(([file, name]) => `${file} → ${name}`)
	t.strictSame(missing, [], 'list these packages under dependencies of package.json')
	t.end()
})

void t.test('layers import only lower layers', (t) => {
	const wrong = [...imports].flatMap(([file, targets]) => {
		const layer = layers.find(({ of }) => of.test(file))
		return [...targets]
			.filter((target) => folderOf(target) !== folderOf(file) && !layer?.mayImport.test(target))
			.map((target) => `${file} → ${target}: ${layer?.of} may import only ${layer?.mayImport}`)
	})
	t.strictSame(wrong, [], 'see `layers`, and "Folders" in docs/architecture.md')
	const ofClient = clientFiles.flatMap((file) => [...importsOf(file)])
	t.strictSame(
		ofClient.filter((target) => !target.startsWith('core/client/')),
		[],
		'core/client is a separate package',
	)
	t.end()
})

void t.test('plugins/types.ts exports the contract of every plugin', (t) => {
	const contracts = files.filter((file) => /^plugins\/[^/]+\/contract\.ts$/.test(file))
	t.ok(contracts.length > 15)
	const missing = contracts.filter((file) => !imports.get('plugins/types.ts')?.has(file))
	t.strictSame(
		missing,
		[],
		'add these to plugins/types.ts, so that third-party plugins get the types of their services',
	)
	t.end()
})

void t.test('the declarations of plugins build no schemas at start', (t) => {
	/** Passes joi to third-party code. */
	const exempt = ['plugins/channels/adapters.ts']
	const eager = files.filter(
		(file) =>
			file.startsWith('plugins/') &&
			!file.endsWith('/settings.ts') &&
			/^import joi from 'joi'/im.test(readFileSync(join(root, file), 'utf8')),
	)
	t.strictSame(eager.toSorted(), exempt, 'see core/util/lazy-joi.ts')
	t.end()
})

void t.test('core and config name no feature', (t) => {
	const named = files
		.filter((file) => /^(core|config)\//.test(file) && !/^core\/(cli|backup)\//.test(file))
		.flatMap((file) => {
			const lines = codeOf(file).split('\n')
			return lines.flatMap((line) => (FEATURES.test(line) ? [`${file}: ${line.trim()}`] : []))
		})
	const unexpected = named.filter((line) => !exceptions.some((known) => line.startsWith(known)))
	t.strictSame(unexpected, [])
	for (const known of exceptions)
		t.ok(
			named.some((line) => line.startsWith(known)),
			`${known} is still needed`,
		)
	t.end()
})

function importsOf(file: string): Set<string> {
	const found = new Set<string>()
	for (const [, path = ''] of codeOf(file).matchAll(/(?:\bfrom\s*|\bimport\(?\s*)'(\.[^']+)'/g))
		found.add(normalize(join(dirname(file), path)))
	return found
}

/** Packages that a file imports at run time, without types, which Node strips. */
function packagesOf(file: string): string[] {
	const code = codeOf(file).replaceAll(/\b(import|export) type\b[^'"]*'[^']+'/g, '')
	const imported = code.matchAll(
		/(?:^import\b[^'"`;]*|\bfrom |\bimport\()'((?:@[\w.-]+\/)?[a-z][\w.-]*)(?:\/[^']*)?'/gm,
	)
	return [...new Set(Array.from(imported, ([, name = '']) => name))]
}

/** The code without comments, with the same line numbers. */
function codeOf(file: string): string {
	const text = readFileSync(join(root, file), 'utf8')
	return text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, (comment) => comment.replaceAll(/[^\n]/g, ''))
}

/** A file directly in core counts as a separate folder. */
function folderOf(file: string): string {
	const [top = '', second = ''] = file.split('/')
	return top === 'core' || top === 'plugins' ? `${top}/${second}` : top
}

/** Groups of nodes that reach each other (Tarjan's strongly connected components). */
function cyclesIn(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
	const order = new Map<string, number>()
	const lowest = new Map<string, number>()
	const path: string[] = []
	const cycles: string[][] = []
	const visit = (node: string): void => {
		order.set(node, order.size)
		lowest.set(node, order.size - 1)
		path.push(node)
		for (const next of graph.get(node) ?? []) {
			if (!graph.has(next)) continue
			if (!order.has(next)) visit(next)
			else if (!path.includes(next)) continue
			lowest.set(node, Math.min(lowest.get(node) ?? 0, lowest.get(next) ?? 0))
		}
		if (lowest.get(node) !== order.get(node)) return
		const cycle = path.splice(path.indexOf(node))
		if (cycle.length > 1) cycles.push(cycle.toSorted())
	}
	for (const node of graph.keys()) if (!order.has(node)) visit(node)
	return cycles
}
