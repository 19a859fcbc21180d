/** `svc plugins new` and `svc plugins test`: the new folder runs, type-checks and passes its tests as it is. */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import { svcFor } from '../../../support/cli.ts'
import { testFolder } from '../../../support/folder.ts'
import { startGateway } from '../../../support/gateway.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))

void t.test(
	'a new plugin passes its tests and runs, also with a broken link to the gateway, and is not overwritten',
	async (t) => {
		const { home, svc } = setUp(t)
		const made = await svc(['plugins', 'new', 'my-notes', '--json'])
		t.equal(made.code, 0, made.stderr)
		const folder = join(home, 'plugins/my-notes')
		t.strictSame(made.json(), {
			name: 'my-notes',
			folder,
			files: ['.gitignore', 'index.test.ts', 'index.ts', 'package.json', 'tsconfig.json'],
		})
		const again = await svc(['plugins', 'new', 'my-notes'])
		t.equal(again.code, exitCodes.conflict)
		t.match(again.stderr, 'already exists')

		unlinkSync(join(folder, 'node_modules/svc-gateway'))
		symlinkSync('/gone', join(folder, 'node_modules/svc-gateway'))
		const tested = await svc(['plugins', 'test', 'my-notes'])
		t.equal(tested.code, 0, tested.stdout + tested.stderr)
		t.match(tested.stdout, 'All tests pass.')
		rmSync(join(folder, 'index.test.ts'))
		t.match((await svc(['plugins', 'test', 'my-notes'])).stderr, 'there are no tests')

		const gateway = await startGateway({ home })
		t.teardown(() => gateway.stop())
		t.equal((await svc(['config', 'set', 'plugins.my-notes', 'true'])).code, 0)
		await svc(['agents', 'create', 'ada'])
		t.match((await svc(['run', 'ada', '/tool my_notes.greet {"name": "Ann"}'])).stdout, 'Hello, Ann!')
	},
)

void t.test('a new channel passes the channel contract suite, which detects a fault', async (t) => {
	const { home, svc } = setUp(t)
	const made = await svc(['plugins', 'new', 'my-chat', '--channel', '--into', 'src'])
	t.equal(made.code, 0)
	t.match(made.stderr, 'svc channels add my_chat')
	const folder = join(home, 'src/my-chat')
	const tested = await svc(['plugins', 'test'], { cwd: folder })
	t.equal(tested.code, 0, tested.stdout + tested.stderr)
	t.match(tested.stdout, 'reports a revoked token')
	const adapter = join(folder, 'index.ts')
	writeFileSync(adapter, readFileSync(adapter, 'utf8').replace("error('refused', 'the", "error('failed', 'the"))
	const broken = await svc(['plugins', 'test', folder])
	t.equal(broken.code, exitCodes.failed)
	t.match(broken.stdout, 'a wrong token is `refused`')
})

void t.test('a new plugin and a new channel type-check against the contract, hapi and joi', async (t) => {
	const { home, svc } = setUp(t)
	await svc(['plugins', 'new', 'my-notes', '--into', home])
	await svc(['plugins', 'new', 'my-chat', '--channel', '--into', home])
	await svc(['plugins', 'new', 'typed', '--into', home])
	const file = join(home, 'typed/index.ts')
	const wrong = [
		"ctx.use('ruins')",
		"ctx.primitive({ name: 'a.b' })",
		'void ctx.config.colour',
		"ctx.use('runs').begin()",
		'void import.meta.dirname.size',
	]
	const right = ["void ctx.use('runs')", "void ctx.collection<string>('a').get('b')"]
	const text = readFileSync(file, 'utf8')
		.replace('start(ctx) {', ['start(ctx) {', ...right, ...wrong].join('\n'))
		.replace('joi.string()', 'joi\n.strung()')
		.replace('} satisfies', "http(server) { server\n.root({ method: 'GET' }) },\n} satisfies")
	writeFileSync(file, text)
	const lines = text.split('\n')
	// All three are checked at once, since their compiler settings are the same.
	const settings = ['my-notes', 'my-chat', 'typed'].map((name) =>
		readFileSync(join(home, name, 'tsconfig.json'), 'utf8'),
	)
	t.equal(new Set(settings).size, 1)
	writeFileSync(join(home, 'tsconfig.json'), settings[0] ?? '')
	const errors = [...typeErrors(home).matchAll(/^(\S+)\((\d+),/gm)].map(([, path = '', line]) => ({ path, line }))
	t.strictSame(new Set(errors.map(({ path }) => path)), new Set(['typed/index.ts']))
	const found = errors.map(({ line }) => lines[Number(line) - 1])
	for (const line of [...wrong, '.strung()', ".root({ method: 'GET' })"])
		t.ok(
			found.some((one) => one?.includes(line)),
			line,
		)
	for (const line of right) t.notOk(found.includes(line), line)
})

void t.test('invalid names and missing folders are refused', async (t) => {
	const { svc } = setUp(t)
	t.equal((await svc(['plugins', 'new', 'agents'])).code, exitCodes.conflict)
	t.equal((await svc(['plugins', 'new', 'My Notes'])).code, exitCodes.usage)
	t.equal((await svc(['plugins', 'test', 'nowhere'])).code, exitCodes.not_found)
})

function setUp(t: Test) {
	const home = testFolder(t)
	return { home, svc: svcFor({ home }) }
}

/** The output of `tsc`; empty if there are no errors. */
function typeErrors(folder: string): string {
	const tsc = join(root, 'node_modules/typescript/bin/tsc')
	return spawnSync(process.execPath, [tsc, '-p', folder], { cwd: folder, encoding: 'utf8' }).stdout
}
