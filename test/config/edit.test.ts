import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { parse } from 'yaml'
import { inline } from '../../config/edit.ts'
import { exampleFile } from '../../docs/make/example.ts'
import { isFault } from '../../core/errors.ts'
import { composition, setSetting, unsetSetting } from '../../core/host/config.ts'

const RUNS = Number(process.env.FUZZ_RUNS ?? 100)
const example = exampleFile(composition)

const unusual = `# top
server: # the address
    # indented by four
    port:   3000   # here
    allowed_hosts: [ a.example,   b.example ]

    # tail of server
    #host: x


#log:
  #level: info
providers:
    ollama: {kind: openai, base_url: "http://x/v1", model: 'qwen3'}
    # more
    #openai:
fallback:
- a
-   b
`

void t.test('setting a value in the example uncomments its line and changes no other line', async (t) => {
	const changes: [string[], unknown, [string, string][]][] = [
		[['auth_mode'], 'token', [['#auth_mode: loopback', 'auth_mode: token']]],
		[
			['server', 'port'],
			8080,
			[
				['#server:', 'server:'],
				['  #port: 3000', '  port: 8080'],
			],
		],
		[
			['runs', 'limits', 'steps'],
			7,
			[
				['#runs:', 'runs:'],
				['  #limits:', '  limits:'],
				['    #steps: 50', '    steps: 7'],
			],
		],
		[['plugins', 'mcp-server'], true, [['#plugins:', 'plugins:\n  mcp-server: true']]],
		[['fallback'], ['a'], [['#fallback: [ollama]', 'fallback:\n  - a']]],
	]
	let edited = example
	for (const [path, value, lines] of changes) {
		const changed = setSetting(example, path, value)
		let wanted = example
		for (const [before, after] of lines) wanted = replaceAfter(wanted, before, after, path[0] ?? '')
		t.equal(changed, wanted, path.join('.'))
		edited = setSetting(edited, path, value)
	}
	t.strictSame(parse(edited), {
		auth_mode: 'token',
		server: { port: 8080 },
		runs: { limits: { steps: 7 } },
		plugins: { 'mcp-server': true },
		fallback: ['a'],
	})
	for (const [path] of changes) edited = unsetSetting(edited, path)
	const remaining = comments(edited)
	let matched = 0
	// In the same order; two sections may have the same line.
	for (const line of comments(example)) if (line === remaining[matched]) matched++
	t.equal(matched, remaining.length)
})

void t.test('an edit keeps the indentation, spacing and comments of an unusual file', async (t) => {
	const cases: [string[], unknown, string, string][] = [
		[['server', 'port'], 8080, 'port:   3000   # here', 'port:   8080   # here'],
		[['server', 'shutdown_grace_s'], 5, 'b.example ]\n', 'b.example ]\n    shutdown_grace_s: 5\n'],
		[['fallback'], ['c'], '- a\n-   b\n', '  - c\n'],
		[['log', 'level'], 'debug', '#log:\n  #level: info', 'log:\n  level: debug'],
		[['server', 'allowed_hosts'], [], '[ a.example,   b.example ]', '[]'],
		[
			['providers', 'ollama', 'model'],
			'a, b',
			`{kind: openai, base_url: "http://x/v1", model: 'qwen3'}`,
			'{kind: openai, base_url: http://x/v1, model: "a, b"}',
		],
	]
	for (const [path, value, before, after] of cases) {
		t.equal(setSetting(unusual, path, value), unusual.replace(before, after), path.join('.'))
	}
	t.equal(unsetSetting(unusual, ['fallback']), unusual.replace('fallback:\n- a\n-   b\n', ''))
	t.equal(unsetSetting(unusual, ['server', 'port']), unusual.replace('    port:   3000   # here\n', ''))
	t.equal(setSetting('', ['a', 'b'], 1), 'a:\n  b: 1\n')
	t.equal(setSetting('a:', ['a', 'b'], 1), 'a:\n  b: 1\n')
	t.equal(setSetting('a: {}', ['a', 'b'], 1), 'a: {b: 1}')
	t.equal(setSetting('a: 1', ['b'], 2), 'a: 1\nb: 2\n')
})

void t.test('a plugin stays on when its last setting is removed', (t) => {
	const path = ['plugins', 'notes', 'max_length']
	for (const text of ['plugins:\n  notes:\n    max_length: 5\n', 'plugins:\n  notes: {max_length: 5}\n'])
		t.equal(unsetSetting(text, path), 'plugins:\n  notes: true\n')
	t.end()
})

void t.test('an edit that is not possible fails with a clear error', async (t) => {
	t.throws(() => setSetting('a: [', ['a'], 1), { code: 'config_invalid' })
	t.throws(() => setSetting('- a', ['a'], 1), { code: 'config_invalid', message: /not a map/ })
	t.throws(() => setSetting('a: 5', ['a', 'b'], 1), {
		code: 'config_invalid',
		message: 'a is not a map of settings in the file',
	})
	t.throws(() => unsetSetting(example, ['server', 'port']), { code: 'not_found' })
})

void t.test('a set value reads back unchanged, and so does everything else', async (t) => {
	const name = fc.constantFrom(
		'server',
		'providers',
		'fallback',
		'new',
		'a.b',
		'- x',
		'null',
		'#',
		'port',
		'ollama',
		'é: ',
	)
	const path = fc.array(name, { minLength: 1, maxLength: 4 })
	const odd = fc.constantFrom('', 'null', '1', 'a: b', '# x', 'x #y', "it's", '${A}', '[', 'a\nb\n', ' ')
	const text = fc.oneof(fc.string({ unit: 'grapheme' }), odd)
	const value = fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text), fc.dictionary(name, text))
	const files = fc.constantFrom(
		example,
		unusual,
		'',
		'new: {}\n',
		'# only this',
		'a.b:\n  port: |\n    long\nnew:\n\n\n',
	)
	let changed = 0
	fc.assert(
		fc.property(files, fc.array(fc.tuple(path, value), { maxLength: 4 }), (file, changes) => {
			let now = file
			for (const [at, set] of changes) {
				const after = attempt(() => setSetting(now, at, set))
				if (after === undefined) continue // a parent is not a map
				assert.deepEqual(parse(after), withValue(parse(now), at, set))
				const without = attempt(() => unsetSetting(after, at))
				if (without !== undefined) assert.ok(!hasIn(parse(without), at))
				changed++
				now = after
			}
		}),
		{ numRuns: RUNS, ...(process.env.FUZZ_RUNS === undefined && { seed: 1 }) },
	)
	t.ok(changed > RUNS, `${changed} changes`)
})

/** Undefined if the change is refused. */
function attempt(change: () => string): string | undefined {
	try {
		return change()
	} catch (error) {
		if (isFault(error, 'config_invalid')) return undefined
		throw error
	}
}

function hasIn(settings: unknown, path: string[]): boolean {
	let at = settings
	for (const key of path) {
		if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return false
		at = (at as Record<string, unknown>)[key]
	}
	return true
}

function withValue(settings: unknown, [key = '', ...rest]: string[], value: unknown): unknown {
	const before = (typeof settings === 'object' && settings !== null ? settings : {}) as Record<string, unknown>
	return { ...before, [key]: rest.length === 0 ? value : withValue(before[key], rest, value) }
}

function comments(text: string): string[] {
	return text.split('\n').filter((line) => line.trimStart().startsWith('#'))
}

/** Replaces the first occurrence after the heading of the section. */
function replaceAfter(text: string, before: string, after: string, section: string): string {
	const heading = text.search(new RegExp(`^#?${section}:`, 'm'))
	return text.slice(0, heading) + text.slice(heading).replace(before, after)
}

void t.test('an inline value reads back unchanged, even if its text looks like another type', (t) => {
	const texts = [
		'loopback',
		'a-b',
		'true',
		'false',
		'null',
		'True',
		'yes',
		'~',
		'1',
		'0x1',
		'1e3',
		'-',
		'a: b',
		'a, b',
		'#',
		'',
	]
	for (const value of [...texts, 0, -5, 1.5, 1e21, true, false, null, ['true', 'b'], { a: 'null' }])
		t.strictSame(parse(`[${inline(value)}]`), [value], inline(value))
	t.equal(inline('loopback'), 'loopback')
	t.end()
})
