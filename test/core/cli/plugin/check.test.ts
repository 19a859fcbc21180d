/** `svc plugins check` finds faults in a plugin, without a running gateway. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import type { PluginFinding } from '../../../../core/cli/plugin/check.ts'
import { inspect } from '../../../../core/cli/plugin/inspect.ts'
import { svcFor } from '../../../support/cli.ts'
import { testFolder } from '../../../support/folder.ts'

/** A plugin's code, the expected findings (default none), and whether the gateway would run it. */
const cases: Record<
	string,
	{
		code: string
		cli?: string
		doctor?: string
		found?: [problem: RegExp, fix: RegExp][]
		valid?: boolean
		/** Arguments of `svc plugins check`. Default: inspected in this process, which is faster but does not survive every plugin. */
		args?: string[]
		file?: string
	}
> = {
	empty: { code: '', found: [[/does not default-export/, /export default/]], valid: false },
	syntax: {
		code: 'enum Planet {}\nexport default {}',
		file: 'index.ts',
		args: [],
		found: [[/does not load: .*index\.ts:1/, /no enums/]],
		valid: false,
	},
	manifest: {
		code: '{ "main": }',
		file: 'package.json',
		args: [],
		found: [[/package\.json is not valid JSON/, /correct package\.json/]],
		valid: false,
	},
	value: {
		code: "import { definePlugin } from 'svc-gateway'\nexport default definePlugin({ name: 'value' })",
		found: [[/svc-gateway/, /import type|npm install/]],
		valid: false,
	},
	ends: {
		code: 'process.exit(3)',
		args: [],
		found: [[/loading its code ends the process \(exit code 3\)/, /process\.exit/]],
		valid: false,
	},
	vault: {
		code: "export default { name: 'vault' }",
		found: [[/built-in plugin "vault"/, /change `name`/]],
		valid: false,
	},
	stranger: {
		code: "export default { name: 'stranger', stop() {} }",
		found: [[/"stop" is not a part of a plugin/, /./]],
		valid: false,
	},
	needy: {
		code: "export default { name: 'needy', needs: ['nobody'] }",
		found: [[/needs plugin "nobody"/, /correct `needs`/]],
		valid: false,
	},
	unset: {
		code: "export default { name: 'unset', config: (joi) => joi.object({ url: joi.string().required() }) }",
		found: [[/plugins\.unset\.url/, /--settings/]],
		valid: false,
	},
	given: {
		code: `export default {
			name: 'given',
			needs: ['agents'],
			config: (joi) => joi.object({ url: joi.string().required() }),
			start: () => ({ all: () => [] }),
			http(server) {
				const options = { auth: { access: { scope: ['agents:read', '*'] } } }
				server.route({ method: 'GET', path: '/v1/given', options, handler: () => [] })
			},
		}`,
		args: ['--settings', '{url: x}'],
	},
	later: {
		code: "export default { name: 'later', start() { Promise.reject(new Error('nobody waits')) } }",
		args: [],
		found: [[/nobody waits/, /catch the error/]],
		valid: false,
	},
	taken: {
		code: "export default { name: 'taken', start(ctx) { ctx.primitive({ name: 'memory.store', description: 'x', run: () => 1 }) } }",
		found: [[/memory\.store/, /other names/]],
		valid: false,
	},
	extends: {
		args: [],
		code: `export default { name: 'extends', start(ctx) {
			ctx.extend('console', { title: 'A title that is far too long for the menu', module: '' })
			ctx.extend('channel', { type: 'pigeon' })
			const can = { formats: [{ markup: 'plain', max_length: 100 }] }
			ctx.extend('channel', { type: 'swift', label: 'Swift', can, connect() {}, config: (joi) => ({ nest: joi.string() }) })
			ctx.extend('channel', { type: 'telegram', label: 'Own', can, connect() {} })
			ctx.extend('metrics', { metrics: { pigeons: { help: 'Pigeons.', type: 'gauge' } }, read: () => ({}) })
			ctx.extend('metrics', { metrics: { extends_out: { help: 'Out.', type: 'gauge' } }, read: () => ({ extends_out: [{ labels: {} }] }) })
			ctx.extend('metrics', { metrics: { extends_in: { help: 'In.', type: 'gauge' } }, read: () => ({ extends_in: 1 }) })
		} }`,
		found: [
			[/adds to console is omitted: "title"/, /ctx\.extend\('console'/],
			[/adds to channel is omitted: "label"/, /ctx\.extend\('channel'/],
			[/adds to channel is omitted: config\(joi\) must return joi\.object\(…\)/, /ctx\.extend\('channel'/],
			[/adds to channel is omitted: another channel has the type or alias telegram/, /ctx\.extend\('channel'/],
			[/adds to metrics is omitted: the name "pigeons" must begin with extends_/, /ctx\.extend\('metrics'/],
			[/adds to metrics is omitted: extends_out has a value/, /ctx\.extend\('metrics'/],
		],
	},
	open: {
		args: [],
		code: `export default { name: 'open', http(server) {
			const handler = () => 1
			server.route([
				{ method: 'GET', path: '/v1/a', options: { auth: false }, handler },
				{ method: 'POST', path: '/v1/b/{id}', options: { tags: ['api'] }, handler },
			])
		} }`,
		cli: `export default { commands: {
			vault: { summary: 'Hide', run() {} },
			idle: { summary: 'Do nothing' },
			listed: { summary: 'List', options: [{ flags: '--all' }], run() {} },
			opened: { summary: 'Open', run() {} },
		} }`,
		doctor: "export default { checks: [{ id: 'vault.key', about: 'x', run() {} }] }",
		found: [
			[/its checks do not load: .*vault\.key/, /doctor\.ts/],
			[/command "vault" is ignored/, /cli\.ts/],
			[/command "idle" has neither/, /cli\.ts/],
			[/command "listed" cannot be used: .*flags/, /cli\.ts/],
			[/GET \/v1\/a answers callers without a token/, /auth: false/],
			[/POST \/v1\/b\/\{id\} has no scope/, /access/],
			[/POST \/v1\/b\/\{id\} accepts any body/, /payload/],
			[/POST \/v1\/b\/\{id\} accepts any parameter/, /params/],
			[/POST \/v1\/b\/\{id\} .*without a description/, /description/],
		],
	},
}

void t.test('each fault is found, with a fix', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	for (const [name, { code, found = [], valid = true, args, file = 'index.js', cli, doctor }] of Object.entries(
		cases,
	)) {
		await t.test(name, async (t) => {
			const folder = join(home, 'src', name)
			mkdirSync(folder, { recursive: true })
			writeFileSync(join(folder, file), code)
			if (cli !== undefined) writeFileSync(join(folder, 'cli.js'), cli)
			if (doctor !== undefined) writeFileSync(join(folder, 'doctor.js'), doctor)
			const findings = args ? await checked(args) : await inspected()
			t.equal(findings.length, found.length, { findings })
			t.equal(
				findings.every(({ level }) => level !== 'error'),
				valid,
			)
			for (const [problem, fix] of found)
				t.ok(
					findings.some((one) => problem.test(one.problem) && fix.test(one.fix)),
					`${problem}: ${JSON.stringify(findings)}`,
				)

			async function checked(args: string[]): Promise<PluginFinding[]> {
				const { code: exit, json, stderr } = await svc(['plugins', 'check', folder, '--json', ...args])
				const report = json()
				t.equal(exit, valid ? exitCodes.ok : exitCodes.failed, stderr)
				t.equal(report.valid, valid)
				return report.findings
			}
			async function inspected(): Promise<PluginFinding[]> {
				const order = { folder, plugins: {}, pluginsFolder: join(home, 'plugins') }
				return (await inspect(order, { doing: async () => {}, uncaught() {} })).findings
			}
		})
	}
})

void t.test('a valid plugin is reported in one line, and the home does not change', async (t) => {
	const home = testFolder(t)
	const svc = svcFor({ home })
	await svc(['plugins', 'new', 'fine'])
	const before = entriesOf(home)
	const { code, stdout } = await svc(['plugins', 'check', 'fine'])
	t.equal(code, 0)
	t.match(stdout, /^fine 0\.1\.0: it runs\n$/)
	t.strictSame(entriesOf(home), before)
	t.equal((await svc(['plugins', 'check', 'fine', '--settings', '3'])).code, exitCodes.usage)
})

/** All paths below a folder. Links are not followed: a plugin has one to the gateway's package. */
function entriesOf(folder: string): string[] {
	return readdirSync(folder, { withFileTypes: true }).flatMap((one) => {
		const path = join(folder, one.name)
		return one.isDirectory() ? [path, ...entriesOf(path)] : [path]
	})
}
