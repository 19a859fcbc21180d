/** The test runner must report every failure, however a test process ends. */
import { execFile } from 'node:child_process'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const root = fileURLToPath(new URL('../../', import.meta.url))

const files = {
	passes: `
		t.equal(1, 1)
		void t.test('inner', { skip: 'why' }, () => {})
		void t.test('later', { todo: 'soon' }, (t) => { t.fail('not yet'); t.end() })`,
	differs: `
		void t.test('outer # one', async (t) => {
			await t.test('fine', async (t) => t.equal(1, 1))
			await t.test('inner', async (t) => t.strictSame({ a: 1 }, { a: 2 }, 'same?'))
			t.fail('after it')
		})`,
	throws: `void t.test('outer', async () => { throw new Error('boom') })`,
	late: `t.equal(1, 1); setTimeout(() => { throw new Error('boom') }, 1); void t.test('waits', () => new Promise(() => {}))`,
	unplanned: `void t.test('outer', async (t) => { t.plan(2); t.equal(1, 1) })`,
	dies: `t.equal(1, 1); console.log('last words'); process.kill(process.pid, 'SIGKILL')`,
	exits: `t.equal(1, 1); process.exitCode = 3`,
	stops: `void t.test('outer', async (t) => { t.equal(1, 1); setImmediate(() => process.reallyExit(0)); await new Promise(() => {}) })`,
	empty: ``,
}

void t.test('failures are printed with their names, and counted', async (t) => {
	const folder = t.testdir(
		Object.fromEntries(
			Object.entries(files).map(([name, code]) => [`${name}.test.ts`, `import t from 'tap'\n${code}\n`]),
		),
	)
	const run = async (...names: string[]): Promise<{ code: number; text: string }> => {
		const paths = names.map((name) => relative(root, join(folder, name)).replaceAll('\\', '/'))
		const args = [join(root, 'test/batches/run.ts'), ...paths]
		const ended = promisify(execFile)(process.execPath, args, { env: { ...process.env, TAP_TIMEOUT: '60' } })
		return ended.then(
			({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
			({ code, stdout, stderr }) => ({ code, text: stdout + stderr }),
		)
	}
	const passed = await run('passes.test.ts')
	t.match(passed, {
		code: 0,
		text: /passed \S+passes\.test\.ts .*# \{ total: 3, pass: 1, todo: 1, skip: 1 \}\n# time=/s,
	})

	const { code, text } = await run('')
	t.equal(code, 1)
	for (const name of Object.keys(files))
		t.match(text, `${name === 'passes' ? 'passed' : 'FAILED'} ${relative(root, folder)}/${name}`)
	t.match(text, /✖ outer # one > inner > same\?\n.*-  "a": 2,/s)
	t.match(text, '✖ outer # one > after it')
	t.notMatch(text, /✖ outer # one(?: > inner)?\n/, 'the parents of a failure are not listed separately')
	t.match(text, /✖ outer > boom\n/)
	t.match(text, /✖ waits > boom\n/)
	t.match(text, '✖ outer > test unfinished')
	t.match(text, /dies\.test\.ts\n  it ended with SIGKILL\n/)
	t.match(text, 'last words')
	t.match(text, /exits\.test\.ts\n  it ended with code 3\n/)
	t.match(text, /stops\.test\.ts\n  it ended with code 0\n/)
	t.match(text, /empty\.test\.ts\n  it ended with code 0\n/)
	t.match(text, /# \{ total: 14, pass: 7, fail: 5, todo: 1, skip: 1 \}\n# time=\S+ s\n/)

	t.match(await run('none.test.ts'), { code: 2, text: 'no test file matches' })
})
