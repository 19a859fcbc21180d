/** `svc backup` and `svc restore`, with a running and with a stopped gateway. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { journalOf } from '../../../core/backup/place.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import { write } from './support.ts'
import { testFolder } from '../../support/folder.ts'

const folder = testFolder(t)
const home = join(folder, 'home')
write(home, { 'config/gateway.yaml': 'log:\n  level: fatal\n' })
/** Finds the gateway by its home, as for a user on the same machine. */
const svc = svcFor({ home })

void t.test('uses the API of a running gateway', async (t) => {
	const gateway = await startGateway({ home })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	const made = await svc(['backup', 'create', '--json'])
	t.equal(made.code, 0, made.stderr)
	t.ok(existsSync(made.json().file))
	const listed = await svc(['backup', 'list'])
	t.match(listed.stdout, made.json().id)
	t.match(listed.stderr, /Folder: .*backups/)
	const verified = await svc(['backup', 'verify', made.json().id])
	t.equal(verified.code, 0, verified.stderr)
	t.match(verified.stdout, /records/)
	const inUse = await svc(['restore', made.json().file, '--force'])
	t.equal(inUse.code, 5)
	t.match(inUse.stderr, /another gateway .*runs with the home/)
	const removed = await svc(['backup', 'remove', made.json().id, '--yes'])
	t.equal(removed.code, 0, removed.stderr)
	t.equal((await svc(['backup', 'remove', made.json().id, '--yes'])).code, 4)
})

void t.test('backs up the home of a stopped gateway, and restores it into a new one', async (t) => {
	const made = await svc(['backup', 'create'])
	t.equal(made.code, 0, made.stderr)
	t.match(made.stderr, /anyone who has the file can read every secret/)
	const [name = ''] = readdirSync(join(home, 'backups'))
	t.match(made.stdout, name)
	t.strictSame((await svc(['backup', 'list', '--json'])).json().backups.length, 1)

	const verified = await svc(['backup', 'verify', name], { cwd: join(home, 'backups') })
	t.equal(verified.code, 0, verified.stderr)
	const target = join(folder, 'other')
	const restored = await svc(['restore', join('backups', name), '--home', '../other', '--json'], { cwd: home })
	t.equal(restored.code, 0, restored.stderr)
	t.match(restored.json(), { home: target, aside: null, notes: [], includes_key: true })
	const gateway = await startGateway({ home: target })
	t.match((await gateway.request('GET', '/v1/agents')).body, [{ name: 'ada' }])
	await gateway.stop()

	// The next start finishes a restore that was killed halfway.
	const staging = `${target}.restoring`
	mkdirSync(staging)
	renameSync(join(target, 'data'), join(staging, 'data'))
	const into = [{ from: join(staging, 'data'), to: join(target, 'data') }]
	writeFileSync(journalOf(target), JSON.stringify({ aside: [], into, staging }))
	const repaired = await startGateway({ home: target })
	t.match((await repaired.request('GET', '/v1/agents')).body, [{ name: 'ada' }])
	t.notOk(existsSync(journalOf(target)) || existsSync(staging))
	await repaired.stop()

	const again = await svc(['restore', join(home, 'backups', name), '--home', target])
	t.equal(again.code, 5)
	t.match(again.stderr, /--force/)
	const forced = await svc(['restore', join(home, 'backups', name), '--home', target, '--force'])
	t.equal(forced.code, 0, forced.stderr)
	t.match(forced.stdout, /other\.before-restore-/)
	t.match(forced.stderr, /runs that were in progress/i)
	t.match(forced.stderr, /revoked since then are valid again/)
})

void t.test('explains what is damaged, missing or not a home', async (t) => {
	const [name = ''] = readdirSync(join(home, 'backups'))
	const file = join(folder, 'broken.tar.gz')
	const bytes = readFileSync(join(home, 'backups', name))
	bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 16
	writeFileSync(file, bytes)
	const nowhere = join(folder, 'nowhere')
	for (const argv of [
		['backup', 'verify', file],
		['restore', file, '--home', nowhere],
	]) {
		const { code, stderr } = await svc(argv)
		t.equal(code, 2, argv.join(' '))
		t.match(stderr, /damaged/)
	}
	t.notOk(existsSync(nowhere))
	const missing = await svc(['backup', 'verify', 'missing'])
	t.equal(missing.code, 4)
	t.match(missing.stderr, /missing, and "missing" is not the id of a backup: svc backup list$/m)
	const lost = await svc(['backup', 'create'], { env: { SVC_HOME: nowhere } })
	t.equal(lost.code, 4)
	t.match(lost.stderr, /no home/)
	write(folder, { 'bare/config/gateway.yaml': '{}\n' })
	t.match((await svc(['backup', 'create'], { env: { SVC_HOME: join(folder, 'bare') } })).stderr, /nothing to back up/)
	t.strictSame(
		readdirSync(folder).filter((one) => one.startsWith('.')),
		[],
	)
	rmSync(file)
})
