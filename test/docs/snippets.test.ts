/** Settings, JSON and names on the pages are valid. */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { parse } from 'yaml'
import { composition, explain, pathOf } from '../../core/host/config.ts'
import { jsonSchema } from '../../config/json-schema.ts'
import { checksOf } from '../../core/cli/doctor/catalogue.ts'
import { builtInTypes } from '../support/documented.ts'
import { startGateway } from '../support/gateway.ts'
import { blocksOf } from './page.ts'
import { markdown, root } from './pages.ts'

const folder = fileURLToPath(root)
const blocks = markdown.flatMap((page) =>
	blocksOf(new URL(page, root)).map((block) => ({ ...block, at: `${page}:${block.line}` })),
)
const textOf = (page: string): string => readFileSync(new URL(page, root), 'utf8')

void t.test('a gateway accepts every gateway.yaml on a page', async (t) => {
	const gateway = await startGateway({ env: { OPENAI_API_KEY: 'sk-test' } })
	t.teardown(() => gateway.stop())
	// `of` marks a file of another program.
	const shown = blocks.filter(
		({ language, attributes: { file = '', of } }) =>
			language === 'yaml' && of === undefined && /^$|gateway\.yaml$/.test(file),
	)
	t.ok(shown.length > 10)
	for (const { at, text } of shown) {
		const part = parse(text) as Part
		for (const name of Object.keys(part.plugins ?? {})) supply(gateway.home, name)
		writeFileSync(join(gateway.home, 'config/gateway.yaml'), `${text}\n${missingIn(part)}`)
		await t.resolves(gateway.running.gateway.reload(), at)
		t.equal(gateway.running.gateway.status.configError(), null, at)
	}
})

void t.test('every JSON block is valid', async (t) => {
	for (const { language, text, at } of blocks) {
		if (language === 'json') t.doesNotThrow(() => JSON.parse(text), at)
	}
})

void t.test('every dotted name is a setting, an event, a tool or a check', async (t) => {
	const sections = new Set(Object.keys(jsonSchema(composition).properties ?? {}))
	const known = new Set([...builtInTypes.keys(), ...primitives(), ...(await checksOf()).map(({ id }) => id)])
	const families = new Set([...known].map((name) => `${name.split('.')[0]}.*`))
	let settings = 0
	for (const page of markdown) {
		for (const [, name = ''] of textOf(page).matchAll(/`([a-z_]+(?:\.[a-z_-]+)+(?:\.\*)?)`/g)) {
			const [first = ''] = name.split('.')
			if (!sections.has(first) || known.has(name) || families.has(name) || isFile(name)) continue
			settings++
			t.doesNotThrow(() => explain(pathOf(name)), `${page}: ${name}`)
		}
	}
	t.ok(settings > 50)
})

void t.test('every environment variable occurs in the code', async (t) => {
	const code = globSync('{core,config,plugins,sandbox,test}/**/*.{ts,mjs}', { cwd: folder }).map((file) =>
		readFileSync(join(folder, file), 'utf8'),
	)
	const files = [...markdown, ...globSync('docs/deploy/*', { cwd: folder })]
	const named = new Set(files.flatMap((file) => textOf(file).match(/\bSVC_[A-Z_]*[A-Z]\b/g) ?? []))
	t.ok(named.size > 10)
	// Except those of the Caddyfile.
	for (const name of named.difference(new Set(['SVC_SITE', 'SVC_GATEWAY', 'SVC_CHAT'])))
		t.ok(
			code.some((text) => text.includes(name)),
			name,
		)
})

interface Part {
	plugins?: Record<string, unknown>
	providers?: Record<string, unknown>
	default_provider?: string
	fallback?: string[]
}

/** The settings that a part of a file needs from the rest of it: providers and the default provider. */
function missingIn({ providers, default_provider, fallback = [] }: Part): string {
	const named = [...(default_provider === undefined ? [] : [default_provider]), ...fallback]
	const all = providers ? Object.keys(providers) : named
	const lines =
		providers || named.length === 0 ? [] : ['providers:', ...named.map((name) => `  ${name}: {kind: offline}`)]
	if (default_provider === undefined && all.length > 1) lines.push(`default_provider: ${all[0]}`)
	return lines.join('\n')
}

/** Creates a plugin that accepts any settings, unless it is built in. */
function supply(home: string, name: string): void {
	if (globSync(`plugins/${name}/index.ts`, { cwd: folder }).length > 0) return
	const file = join(home, 'plugins', name, 'index.js')
	mkdirSync(dirname(file), { recursive: true })
	writeFileSync(file, `export default { name: '${name}', config: (joi) => joi.object().unknown() }\n`)
}

function primitives(): string[] {
	return globSync('plugins/**/*.ts', { cwd: folder }).flatMap((file) =>
		[...readFileSync(join(folder, file), 'utf8').matchAll(/^\t+name: '([a-z]+\.[a-z_]+)'/gm)].map(
			([, name = '']) => name,
		),
	)
}

function isFile(name: string): boolean {
	return /\.(ts|js|mjs|json|yaml|yml|md|mdb|key|lock|conf|service)$/.test(name)
}
