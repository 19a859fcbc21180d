/** The upgrade of a home of 0.1.0: its migrations, its backup, and the refusals that leave the home unchanged. */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { boot } from '../../core/boot.ts'
import type { BootOptions } from '../../core/boot.ts'
import { readRuntimeFile } from '../../core/process/runtime-file.ts'
import { format } from '../../core/store/format.ts'
import { openLog } from '../../core/log/log.ts'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import type { Store } from '../../core/store/ports.ts'
import { allMigrations, migrate } from '../../core/upgrade/migrate.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import { upgradeOf } from '../../core/upgrade/upgrade.ts'
import { svcFor } from '../support/cli.ts'
import { markFormat } from '../support/format.ts'
import { spawnGateway } from '../support/process.ts'
import { openHome } from './home.ts'

const env = { MODEL_URL: 'http://127.0.0.1:9' }

function oldHome(t: Test): { home: string; folder: string; backup: string } {
	const { folder, home, facts } = openHome('0.1.0')
	t.teardown(() => rmSync(folder, { recursive: true, force: true }))
	return { home, folder, backup: facts.backup }
}

const dataOf = (home: string): Buffer => readFileSync(join(home, 'data/data.mdb'))
const backupsIn = (home: string): string[] => readdirSync(join(home, 'backups')).toSorted()

/** Starts a gateway, which upgrades the home, and stops it. Returns its address. */
async function start(home: string, more: Partial<BootOptions> = {}): Promise<string | null> {
	const own = { SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'silent' }
	const running = await boot({ home, env: { ...env, ...own }, ...more })
	const url = running.gateway.status.url('main')
	await running.stop()
	return url
}

/** Starts a gateway that must refuse to start. Returns the error. */
const refusalOf = (home: string, noBackup = false): Promise<string> =>
	start(home, { noBackup }).then(() => 'it started', String)

async function addSettings(home: string, yaml: string): Promise<void> {
	const file = join(home, 'config/gateway.yaml')
	writeFileSync(file, `${readFileSync(file, 'utf8')}\n${yaml}\n`)
}

async function writesOf(migration: Migration, store: Store): Promise<number> {
	let writes = 0
	for await (const { prefix } of migration.places(store)) {
		const entries = await Array.fromAsync(store.list(prefix))
		for (let at = 0; at < entries.length; at += 40)
			writes += (await migration.convert(entries.slice(at, at + 40), store)).length
	}
	return writes
}

void t.test('each migration changes records of the home, and none afterwards', async (t) => {
	const migrations = await allMigrations()
	t.equal(new Set(migrations.map(({ name }) => name)).size, migrations.length, 'names are unique')
	t.strictSame(
		[...new Set(migrations.map((one) => one.format))],
		Array.from({ length: format - 1 }, (_, at) => at + 2),
		'each format has its migrations',
	)
	const { home } = oldHome(t)
	await using engine = await openLmdb({ path: join(home, 'data') })
	if (!engine.format) throw new Error('there is no format')
	for (const one of migrations) t.ok((await writesOf(one, engine.store)) > 0, one.name)
	await migrate({ store: engine.store, format: engine.format, migrations, report: () => {} })
	for (const one of migrations) t.equal(await writesOf(one, engine.store), 0, one.name)
})

void t.test('svc doctor states what will change, and changes nothing', async (t) => {
	const { home } = oldHome(t)
	const before = dataOf(home)
	const doctor = async () => (await svcFor({ home })(['doctor', '--only', 'upgrade', '--json'], { env })).json()
	const { checks } = await doctor()
	t.match(checks, [
		{
			id: 'upgrade.data',
			level: 'note',
			message:
				/from format 1 to \d+: it looks at agents \(3\).*memories \(4\).*takes at most about \d+ s, and needs up to \d+ MiB/,
		},
	])
	t.ok(dataOf(home).equals(before))
	await start(home)
	t.match((await doctor()).checks, [{ level: 'ok' }])
})

void t.test('a backup is taken before the first write, and can be restored', async (t) => {
	const { home, folder, backup } = oldHome(t)
	await start(home)
	const [first = '', second = '', ...others] = backupsIn(home)
	t.strictSame([first.includes(backup), others], [true, []])
	await start(home)
	t.strictSame(backupsIn(home), [first, second], 'the next start takes no backup')
	const target = join(folder, 'back')
	const restored = await svcFor({ home })(['restore', join(home, 'backups', second), '--home', target], { env })
	t.equal(restored.code, 0, restored.stderr)
	const engine = await openLmdb({ path: join(target, 'data') })
	t.strictSame(engine.format?.mark(), { format: 1 }, 'the format of the older version')
	await engine[Symbol.asyncDispose]()
	const again = await spawnGateway(target, env, { flags: ['--no-backup'] })
	await again.kill()
	t.notOk(readdirSync(target).includes('backups'), '--no-backup takes no backup')
})

void t.test('other programs find the gateway while it upgrades its home', async (t) => {
	const { home } = oldHome(t)
	const urls: unknown[] = []
	const url = await start(home, { upgrading: () => urls.push(readRuntimeFile(home)?.url) })
	t.strictSame([...new Set(urls)], [url])
	t.equal(readRuntimeFile(home), undefined)
})

void t.test('a home of a newer version is refused unchanged', async (t) => {
	const { home } = oldHome(t)
	await markFormat(join(home, 'data'), format + 1, '7.7.0')
	const before = dataOf(home)
	t.match(
		await refusalOf(home),
		/has format \d+, and this version reads formats up to \d+: start version 7\.7\.0 or a newer one/,
	)
	const report = (await svcFor({ home })(['doctor', '--only', 'upgrade', '--json'], { env })).json()
	t.match(report.checks, [{ level: 'error', message: /start version 7\.7\.0/, fix: /install that version/ }])
	t.ok(dataOf(home).equals(before))
})

void t.test('an upgrade without disk space for it and its backup does not begin', async (t) => {
	const { home } = oldHome(t)
	await addSettings(home, 'store: {min_free_mib: 1048576}')
	const before = dataOf(home)
	for (const noBackup of [false, true])
		t.match(await refusalOf(home, noBackup), /needs up to \d+ MiB of disk.*Nothing has changed: free some space/)
	t.ok(dataOf(home).equals(before))
	t.equal(backupsIn(home).length, 1)
})

void t.test('a backup on the same disk counts toward the needed space', async (t) => {
	const { home } = oldHome(t)
	const path = join(home, 'data')
	await using engine = await openLmdb({ path })
	if (!engine.format) throw new Error('there is no format')
	const options = {
		engine: { ...engine, space: () => ({ bytes: 100 * 1024 ** 2, free_bytes: 50 * 1024 ** 2 }) },
		data: engine.format,
		log: openLog({ level: 'silent', format: 'json' }),
		folder: path,
		min_free_mib: 1,
	}
	const backup = {
		home,
		folder: join(home, 'backups/new'),
		include_key: true,
		min_free_mib: 1,
	}
	await t.rejects(async () => upgradeOf({ ...options, backup })?.run(), {
		message: /its backup included; 50 MiB are free/,
	})
	await upgradeOf({ ...options, backup: null })?.run()
	t.equal(engine.format.mark().format, format)
})

void t.test('an upgrade does not begin if its backup fails', async (t) => {
	const { home, folder } = oldHome(t)
	writeFileSync(join(folder, 'file'), '')
	await addSettings(home, `backups: {folder: ${join(folder, 'file')}}`)
	const before = dataOf(home)
	t.match(await refusalOf(home), /the backup before the upgrade failed: .*Nothing has changed.*--no-backup/)
	t.ok(dataOf(home).equals(before))
})

void t.test('a gateway does not start with a read-only home, and leaves it unchanged', async (t) => {
	const { home } = oldHome(t)
	const before = dataOf(home)
	if (!makeReadOnly(t, home)) return t.pass('skipped: this user can write everywhere and cannot mount')
	await t.rejects(spawnGateway(home, env), /the gateway ended before it listened/)
	t.ok(dataOf(home).equals(before))
})

/** Returns false if that is not possible here. */
function makeReadOnly(t: Test, home: string): boolean {
	if (process.getuid?.() !== 0) {
		execFileSync('chmod', ['-R', 'a-w', home])
		t.teardown(() => {
			chmodSync(home, 0o700)
			execFileSync('chmod', ['-R', 'u+w', home])
		})
		return true
	}
	const mount = (...args: string[]): boolean => spawnSync('mount', args).status === 0
	if (!mount('--bind', home, home)) return false
	t.teardown(() => spawnSync('umount', [home]))
	return mount('-o', 'remount,ro,bind', home)
}
