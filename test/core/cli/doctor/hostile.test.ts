/** Homes with traps: the doctor changes nothing outside of them, and does not hang. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { examine } from '../../../../core/cli/doctor/doctor.ts'
import { masterKeyFrom } from '../../../../plugins/vault/master-key.ts'
import { testFolder } from '../../../support/folder.ts'

function homeFor(t: Test): string {
	const home = join(testFolder(t), 'home')
	mkdirSync(home, { mode: 0o700 })
	return home
}

void t.test('files behind a linked keys folder are reported and never changed', async (t) => {
	const home = homeFor(t)
	const outside = join(home, '..', 'outside')
	mkdirSync(outside)
	chmodSync(outside, 0o755)
	writeFileSync(join(outside, 'passwd'), 'for all to read')
	chmodSync(join(outside, 'passwd'), 0o644)
	symlinkSync(outside, join(home, 'keys'))
	const { checks, fixed } = await examine({ home, env: {}, only: ['keys.mode'], fix: true })
	t.match(checks, [{ level: 'error', message: /passwd is open/ }])
	t.notMatch(checks[0]?.fix, /--fix/)
	t.strictSame(fixed, [])
	t.equal(statSync(join(outside, 'passwd')).mode & 0o777, 0o644)
})

void t.test('a home may be a link to a folder', async (t) => {
	const home = homeFor(t)
	const link = `${home}-link`
	symlinkSync(home, link)
	const only = ['home.mode', 'home.owner']
	t.match((await examine({ home: link, env: {}, only })).summary, { ok: 2 })
	chmodSync(home, 0o755)
	const { fixed } = await examine({ home: link, env: {}, only, fix: true })
	t.match(fixed, [{ id: 'home.mode' }])
	t.equal(statSync(home).mode & 0o777, 0o700)
})

void t.test(
	'a named pipe in the place of the key is refused and not read',
	{ skip: process.platform === 'win32' },
	async (t) => {
		const home = homeFor(t)
		mkdirSync(join(home, 'keys'))
		spawnSync('mkfifo', [join(home, 'keys/vault.key')])
		t.throws(() => masterKeyFrom({ home, env: {}, isNew: false }), { code: 'vault_locked', message: /is a pipe/ })
	},
)

void t.test(
	'a named pipe in the place of gateway.yaml is reported and not read',
	{ skip: process.platform === 'win32' },
	(t) => {
		const home = homeFor(t)
		mkdirSync(join(home, 'config'))
		spawnSync('mkfifo', [join(home, 'config/gateway.yaml')])
		const svc = fileURLToPath(new URL('../../../../core/svc.mjs', import.meta.url))
		const { signal, stdout } = spawnSync(process.execPath, [svc, 'doctor'], {
			env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home },
			encoding: 'utf8',
			timeout: 60_000,
			killSignal: 'SIGKILL', // a process that waits for the pipe handles no other signal
		})
		t.equal(signal, null)
		t.match(stdout, /config\.valid .*gateway\.yaml: is not a file/)
		t.notMatch(stdout, /the check failed/)
		t.end()
	},
)

void t.test('a file in the place of a folder is reported', async (t) => {
	for (const folder of ['config', 'data', 'plugins', 'skills', 'keys', 'run']) {
		const home = homeFor(t)
		writeFileSync(join(home, folder), '')
		const { checks } = await examine({ home, env: {}, only: ['home.writable'] })
		t.match(checks, [{ level: 'error', message: `${folder} is not a folder`, fix: /move it away/ }])
	}
	const home = homeFor(t)
	symlinkSync('away', join(home, 'data'))
	const { checks } = await examine({ home, env: {}, only: ['home.writable'] })
	t.match(checks, [{ level: 'error', message: /data is a link to away, which does not exist/, fix: /mount the disk/ }])
})
