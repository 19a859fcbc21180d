/** svc doctor runs the checks of third-party plugins. */
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { examine } from '../../../../core/cli/doctor/doctor.ts'
import { checksOf } from '../../../../core/cli/doctor/catalogue.ts'
import { makeHome } from '../../../support/gateway.ts'
import { patience as limits } from './healthy-home.ts'

const clock = `
export default {
	checks: [
		{ id: 'clock.home', about: 'its home', run: async ({ home }) => ({ level: 'note', message: 'the home is ' + home, fix: 'nothing' }) },
		{ id: 'clock.config', about: 'its settings', run: async (context) => [
			{ level: 'ok', message: 'port ' + (await context.config()).server.port, fix: null },
			{ level: 'warning', message: 'it is late', fix: 'wind it up' },
		] },
		{ id: 'clock.broken', about: 'a check that fails', run: async () => { throw new Error('no hands') } },
		{ id: 'clock.odd', about: 'a check that finds nonsense', run: async () => [null] },
	],
}
`
const files: Record<string, string> = {
	ending: 'process.exit(3)',
	throwing: `throw new Error('no checks today')`,
	foreign: `export default { checks: [{ id: 'vault.key', about: 'x', run() {} }] }`,
	empty: 'export default {}',
}

function homeWith(doctors: Record<string, string>): string {
	const names = Object.keys(doctors)
	const home = makeHome({
		config: `server: {port: 4321}\nplugins: {${names.map((name) => `${name}: true`).join(', ')}}\n`,
		files: Object.fromEntries(
			names.flatMap((name) => [
				[`plugins/${name}/index.js`, `export default { name: '${name}' }`],
				[`plugins/${name}/doctor.js`, doctors[name] ?? ''],
			]),
		),
	})
	t.teardown(() => rmSync(home, { recursive: true, force: true }))
	return home
}

const env = { PATH: process.env.PATH }

void t.test('they are listed, and get the same context as built-in checks', async (t) => {
	const home = homeWith({ clock })
	const ids = (await checksOf({ home, env, limits })).map(({ id }) => id)
	t.match(
		ids.filter((id) => id.startsWith('clock.')),
		['clock.home', 'clock.config', 'clock.broken', 'clock.odd'],
	)
	const { checks } = await examine({ home, env, limits, only: ids.filter((id) => /^(clock|plugin\.checks)/.test(id)) })
	t.strictSame(checks, [
		{ id: 'clock.home', level: 'note', message: `the home is ${home}`, fix: 'nothing' },
		{ id: 'clock.config', level: 'ok', message: 'port 4321', fix: null },
		{ id: 'clock.config', level: 'warning', message: 'it is late', fix: 'wind it up' },
		{
			id: 'clock.broken',
			level: 'warning',
			message: 'a check that fails: the check failed (no hands)',
			fix: 'fix what the message names, then check again: svc doctor --only clock.broken',
		},
		{
			id: 'clock.odd',
			level: 'warning',
			message: checks[4]?.message,
			fix: `correct ${join(home, 'plugins/clock/doctor.js')}`,
		},
		{ id: 'plugin.checks', level: 'ok', message: 'the checks of all third-party plugins load (1)', fix: null },
	])
	t.match(checks[4]?.message, /what it returned is not a finding/)
})

void t.test('unusable files are reported, and the other checks run', async (t) => {
	const home = homeWith({ clock, ...files })
	const { checks } = await examine({ home, env, limits, only: ['clock.home', 'plugin.checks'] })
	t.match(checks[0], { id: 'clock.home', level: 'note' })
	const problems = new Map(
		checks.slice(1).map(({ message, level }) => [/^plugin (\w+): /.exec(message)?.[1], { message, level }]),
	)
	t.match(problems.get('ending'), { level: 'warning', message: /does not finish \(exit code 3\)/ })
	t.match(problems.get('throwing'), { level: 'warning', message: /no checks today/ })
	t.match(problems.get('foreign'), { level: 'warning', message: /such as foreign\.reachable, not vault\.key/ })
	t.match(problems.get('empty'), { level: 'warning', message: /list of checks/ })
	t.equal(problems.size, 4)
})

void t.test('a file that hangs is reported after the time limit', async (t) => {
	const home = homeWith({ hanging: 'await new Promise(() => { setInterval(() => {}, 1000) })' })
	const { checks } = await examine({ home, env, limits: { ...limits, thirdParty: 500 }, only: ['plugin.checks'] })
	t.match(checks, [{ level: 'warning', message: /^plugin hanging: .*does not finish \(SIGKILL\)/ }])
})

void t.test('a file that other users can change does not run', async (t) => {
	const home = homeWith({ clock })
	chmodSync(home, 0o755)
	chmodSync(join(home, 'plugins/clock'), 0o777)
	const ids = (await checksOf({ home, env, limits })).map(({ id }) => id)
	t.notOk(ids.includes('clock.home'))
	const { checks } = await examine({ home, env, limits, only: ['plugins.mode'] })
	t.match(checks, [{ level: 'error', message: /clock is not loaded/ }])
})
