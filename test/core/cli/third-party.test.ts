/** Commands of third-party plugins: help, completion and errors. */
import { chmodSync, existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { exitCodes } from '../../../core/cli/contract.ts'
import { svcFor } from '../../support/cli.ts'
import type { Svc } from '../../support/cli.ts'
import { makeHome } from '../../support/gateway.ts'

/** A home with these files in plugins/, and a gateway.yaml. */
function homeWith(files: Record<string, string>, config: string): { home: string; svc: Svc } {
	const inPlugins = Object.fromEntries(Object.entries(files).map(([name, text]) => [`plugins/${name}`, text]))
	const home = makeHome({ config, files: inPlugins }, t)
	chmodSync(home, 0o700)
	return { home, svc: svcFor({ home, url: 'http://127.0.0.1:2' }) }
}

/** Creates a file when its code runs. */
const createsFile = `
import { writeFileSync } from 'node:fs'
writeFileSync(new URL('./loaded', import.meta.url), '')
`

const weather = `${createsFile}
import type { CommandFile } from 'a-package-that-is-not-installed'

export default {
	commands: {
		weather: {
			summary: 'Show the weather',
			arguments: '<city> [note...]',
			options: { '--days <n>': { about: 'for how many days', max: 14, default: 3, formerly: '--for-days' }, '-l, --long': 'more of it' },
			async run({ out, error }, { city, note, days, long = false }: { city: string; note: string[]; days: number; long?: boolean }) {
				if (city === 'atlantis') throw error('not_found', 'there is no city "atlantis"')
				out.answer({ city, note, days, long }, (value, style) => style.fields(Object.entries(value)))
			},
			commands: { cities: { description: 'List the cities', run({ out }) { out.answer(['rome'], (all) => all.join()) } } },
		},
	},
	candidates: { city: () => ['rome', 'riga', 'oslo'], agent: () => ['nobody'] },
} satisfies CommandFile
`

void t.test('a command of a third-party plugin works like a built-in one', async (t) => {
	const { svc } = homeWith({ 'weather/cli.ts': weather }, 'plugins: {weather: true}\n')
	const help = await svc(['--help'])
	t.match(help.stdout, /\nPlugins:\n {2}weather .*Show the weather\n/)
	t.equal(help.stderr, '')
	t.match((await svc(['help', 'weather'])).stdout, /--days <n> .*\(default: 3\)/)
	const { code, json } = await svc(['weather', 'rome', 'by', 'night', '--days', '7', '-l', '--json'])
	t.equal(code, 0)
	t.strictSame(json(), { city: 'rome', note: ['by', 'night'], days: 7, long: true })
	t.equal((await svc(['weather', 'cities'])).stdout, 'rome\n')
	const missing = await svc(['weather', 'atlantis'])
	t.strictSame([missing.code, missing.stderr], [exitCodes.not_found, 'svc: there is no city "atlantis"\n'])
	t.equal((await svc(['weather', 'rome', '--days', '15'])).code, exitCodes.usage)
	const former = await svc(['weather', 'rome', '--for-days', '7', '--json'])
	t.match(former.json(), { days: 7 })
	t.match(former.stderr, /--for-days is now named --days; use --days/)
	t.notMatch((await svc(['help', 'weather'])).stdout, /--for-days/)
	t.equal((await svc(['weather', 'rome', '--for-days', '15'])).code, exitCodes.usage)
	t.equal((await svc(['weather'])).code, exitCodes.usage)
})

void t.test('completion offers commands, options and candidates of plugins', async (t) => {
	const { svc } = homeWith({ 'weather/cli.ts': weather }, 'plugins: {weather: {enabled: true}}\n')
	const words = async (...typed: string[]): Promise<string> =>
		(await svc(['completion', 'words', '--', ...typed])).stdout
	t.match(await words(''), 'weather\n')
	t.equal(await words('weather', '--da'), '--days\n')
	t.equal(await words('weather', 'cities', ''), '')
	t.equal(await words('weather', 'rome', '--days', ''), '', 'the option has no candidates')
	t.equal(await words('agents', 'show', 'no'), '', 'candidates of built-in plugins are not replaced')
})

void t.test('a built-in command does not load the code of a plugin', async (t) => {
	const { home, svc } = homeWith({ 'weather/cli.ts': weather }, 'plugins: {weather: true}\n')
	const isLoaded = (): boolean => existsSync(join(home, 'plugins/weather/loaded'))
	await svc(['config', 'path'])
	await svc(['agents', '--help'])
	t.notOk(isLoaded())
	await svc(['weather', 'rome'])
	t.ok(isLoaded())
})

void t.test('only plugins that are on have commands, also with a path to another folder', async (t) => {
	const files = {
		'weather/cli.ts': weather,
		'else/where/cli.js': weather
			.replace(/: \{ city: string.*?\}\)/, ')')
			.replaceAll(/^import type.*|satisfies.*$/gm, ''),
	}
	for (const off of [
		'',
		'plugins: {weather: false}\n',
		'plugins: {weather: {enabled: false}}\n',
		'plugins: [weather]\n',
	]) {
		const { home, svc } = homeWith(files, off)
		t.equal((await svc(['weather', 'rome'])).code, exitCodes.usage, off)
		t.notOk(existsSync(join(home, 'plugins/weather/loaded')))
	}
	const { home, svc } = homeWith(files, '# comment\nplugins:\n  weather:\n    path: else/where\n')
	t.equal((await svc(['weather', 'rome'])).code, 0)
	t.notOk(existsSync(join(home, 'plugins/weather/loaded')))
})

void t.test('a plugin cannot replace a command or break other plugins', async (t) => {
	const file = (commands: string): string => `export default { commands: { ${commands} } }`
	const { svc } = homeWith(
		{
			'broken/cli.js': 'this is not JavaScript',
			'empty/cli.js': 'export const nothing = 1',
			'thief/cli.js': file(
				`agents: { summary: 'x', run() {} }, help: { summary: 'x' }, fine: { summary: 'It is fine', run({ out }) { out.write('fine\\n') } }`,
			),
			'second/cli.js': file(`fine: { summary: 'x', run() {} }`),
			'odd/cli.js': file(
				`'Odd Name': { summary: 'x' }, bare: {}, flags: { summary: 'x', options: { nonsense: 'x' } }, twice: { summary: 'x', arguments: '<one>', options: { '--one <x>': 'x' } }`,
			),
			'slow/cli.js': 'await new Promise(() => {})',
			'weather/cli.ts': weather,
		},
		'plugins: {broken: true, empty: true, thief: true, second: true, odd: true, slow: true, weather: true}\n',
	)
	const { code, stdout, stderr } = await svc(['--help'])
	t.equal(code, 0)
	t.match(stdout, /\n {2}weather .*\n/)
	t.match(stdout, 'It is fine')
	t.match(stdout, 'Create, list, change and delete agents')
	for (const warning of [
		'plugin "broken": ',
		/plugin "empty": .*cli\.js must default-export an object with commands/,
		'plugin "thief": its command "agents" is ignored, because svc has one of that name; rename it',
		'plugin "thief": its command "help" is ignored, because svc has one of that name; rename it',
		'plugin "second": its command "fine" is ignored, because plugin "thief" has one of that name',
		'plugin "odd": "Odd Name" cannot name a command',
		'plugin "odd": its command "bare" has no summary',
		/plugin "odd": .*nonsense/,
		'plugin "odd": its command "twice" has an argument and an option with the same name "one"',
		/plugin "slow": .*did not answer within 2 s/,
	])
		t.match(stderr, warning)
	t.match((await svc(['agents'])).stderr, 'no gateway answers', 'the built-in command ran')
	t.strictSame(
		[(await svc(['weather', 'rome'])).stderr, (await svc(['weather', 'rome'])).code],
		['', 0],
		'its plugin loads before the others',
	)
	t.equal((await svc(['completion', 'words', '--', 'wea'])).stdout, 'weather\n')
})

void t.test('a link to itself, or null as candidates, breaks no command', async (t) => {
	const cli =
		"export default { commands: { other: { summary: 'Another', run({ out }) { out.write('other\\n') } } }, candidates: null }"
	const { home, svc } = homeWith(
		{ 'weather/cli.ts': weather, 'other/cli.js': cli },
		'plugins: {weather: true, other: true}\n',
	)
	// The modes of files are checked only in a home that other users can enter.
	chmodSync(home, 0o755)
	symlinkSync('loop', join(home, 'plugins/weather/loop'))
	const { code, stdout, stderr } = await svc(['other'])
	t.strictSame([code, stdout, stderr], [0, 'other\n', ''])
	t.equal((await svc(['--help'])).stderr, '')
})

void t.test('code that other users can change does not run', { skip: process.platform === 'win32' }, async (t) => {
	const { home, svc } = homeWith({ 'weather/cli.ts': weather }, 'plugins: {weather: true}\n')
	chmodSync(home, 0o755)
	chmodSync(join(home, 'plugins/weather/cli.ts'), 0o666)
	const refused = await svc(['weather', 'rome'])
	t.equal(refused.code, exitCodes.usage)
	t.match(
		refused.stderr,
		/plugin "weather": its commands are not loaded: .*cli\.ts \(mode 0666\) is writable by every user/,
	)
	t.notOk(existsSync(join(home, 'plugins/weather/loaded')))
	t.match((await svc(['--help'])).stdout, 'Create, list, change and delete agents')
	t.equal((await svc(['weather', 'rome'], { env: { SVC_ALLOW_SHARED_HOME: '1' } })).code, 0)
})
