/** The first start builds the bundle, later starts use it, and a changed source makes it outdated. */
import { execFile } from 'node:child_process'
import {
	copyFileSync,
	cpSync,
	mkdirSync,
	readFileSync,
	readdirSync,
	rmSync,
	statSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { Test } from 'tap'
import { runnable } from '../../../../core/cli/launch/bundle.mjs'

const real = fileURLToPath(new URL('../../../../', import.meta.url))

const main = `import { greeting } from './greeting.ts'
import { importOwn } from './util/own-code.ts'
import { readdirSync } from 'node:fs'

const folder = new URL('../plugins/', import.meta.url)
const names: string[] = []
for (const name of readdirSync(folder)) {
	const plugin = (await importOwn(new URL(\`\${name}/index.ts\`, folder))) as { default: string }
	names.push(plugin.default)
}
const where = new Error('here').stack?.split('\\n')[1]
console.log(JSON.stringify({ program: process.argv[1], greeting, names, where }))
`

/** A small program in place of the gateway. Without a lock file, no packages are installed. */
function makeRoot(t: Test): string {
	const root = t.testdir({ core: { util: {}, 'main.ts': main }, plugins: { one: {} } })
	for (const folder of ['process', 'cli/launch'])
		cpSync(join(real, 'core', folder), join(root, 'core', folder), { recursive: true })
	for (const file of ['launch.mjs', 'util/own-code.ts'])
		copyFileSync(join(real, 'core', file), join(root, 'core', file))
	writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
	writeFileSync(join(root, 'core/greeting.ts'), "export const greeting: string = 'hello'\n")
	writeFileSync(join(root, 'plugins/one/index.ts'), "export default 'one' as string\n")
	symlinkSync(join(real, 'node_modules'), join(root, 'node_modules'))
	return root
}

interface Output {
	/** The file that ran. */
	program: string
	greeting: string
	names: string[]
	where: string
	/** Standard error. */
	errors: string
}

async function start(root: string): Promise<Output> {
	const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(root, 'core/launch.mjs'), 'start'])
	return { ...(JSON.parse(stdout) as Output), errors: stderr }
}

void t.test('a start runs the bundle, and rebuilds it only if its sources have changed', async (t) => {
	const root = makeRoot(t)
	const first = await start(root)
	t.match(first.program, /[\\/]dist[\\/][^\\/]+[\\/]core-main\.js$/)
	t.match(first, { greeting: 'hello', names: ['one'], errors: '' })
	t.equal((await start(root)).program, first.program)

	const file = join(root, 'core/greeting.ts')
	const text = readFileSync(file, 'utf8')
	writeFileSync(file, text)
	t.equal((await start(root)).program, first.program, 'the same content')

	const { atime, mtime } = statSync(file)
	writeFileSync(file, text.replace('hello', 'howdy'))
	utimesSync(file, atime, mtime)
	const edited = await start(root)
	t.not(edited.program, first.program)
	t.equal(edited.greeting, 'howdy', 'a change that keeps size and time')

	mkdirSync(join(root, 'plugins/two'))
	writeFileSync(join(root, 'plugins/two/index.ts'), "export default 'two'\n")
	t.strictSame((await start(root)).names, ['one', 'two'])

	writeFileSync(join(root, 'plugins/two/index.ts'), "export default 'three'\n")
	t.strictSame((await start(root)).names, ['one', 'three'])
	t.ok(readdirSync(join(root, 'dist')).length <= 3, 'unused bundles are removed')
})

void t.test('a stack trace names the line in the source', async (t) => {
	const root = makeRoot(t)
	t.match((await start(root)).where, `${join(root, 'core/main.ts')}:11:15`)
})

void t.test('if the bundle cannot be built, the sources run, with a warning', async (t) => {
	const root = makeRoot(t)
	rmSync(join(root, 'core/cli/launch/make-bundle.mjs'))
	const output = await start(root)
	t.match(output.errors, /^The gateway runs from its sources, .*: no bundle can be made: .*make-bundle.*\n$/)
	t.equal(output.program, join(root, 'core/main.ts'))
})

void t.test('a start of the gateway loads few files', async (t) => {
	const program = await runnable('core/main.ts')
	const loaded = new Set<string>()
	const load = (file: string, imports: RegExp): void => {
		if (loaded.has(file)) return
		loaded.add(file)
		const text = readFileSync(join(dirname(program), file), 'utf8')
		for (const [, name = ''] of text.matchAll(imports)) load(name, /(?:from|import)"\.\/([^"]+)"/g)
	}
	// The program itself imports nearly everything once it handles errors.
	load(basename(program), /(?:from|import|import\()"\.\/([^"]+)"/g)
	t.ok(loaded.size >= 3 && loaded.size <= 6, [...loaded].join(', '))
	t.ok([...loaded].some((file) => statSync(join(dirname(program), file)).size > 1_000_000))
})

void t.test('every program of a thread or process is in the bundle', async (t) => {
	const listed = readFileSync(join(real, 'core/cli/launch/make-bundle.mjs'), 'utf8')
	const sources = ['core', 'plugins', 'sandbox', 'config'].flatMap((folder) =>
		readdirSync(join(real, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
	)
	let count = 0
	for (const file of sources.filter((one) => one.endsWith('.ts'))) {
		const text = readFileSync(join(real, file), 'utf8')
		for (const [, before, name = ''] of text.matchAll(/(\w+\()?new URL\('([^']+\.ts)', import\.meta\.url\)/g)) {
			const program = join(file, '..', name)
			if (program === 'core/cli/commands.ts') continue // imported
			count++
			t.equal(before, 'programOf(', `${file} names ${program}`)
			const isFound = program.startsWith('plugins/') && program.endsWith('/worker.ts')
			t.ok(isFound || listed.includes(`'${program}'`), `make-bundle.mjs lists ${program}`)
		}
	}
	t.ok(count > 5)
})

void t.test('no source map of the bundle names the folder in which it was made', async (t) => {
	const folder = dirname(await runnable('core/main.ts'))
	const maps = readdirSync(folder).filter((name) => name.endsWith('.map'))
	t.not(maps.length, 0)
	t.same(
		maps.filter((name) => readFileSync(join(folder, name), 'utf8').includes(real)),
		[],
		'so that two builds of the same sources are the same',
	)
})
