/** Backups over HTTP: creation, listing, removal, schedule and failures. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	symlinkSync,
	utimesSync,
	writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { originOf, partialOf } from '../../../core/backup/names.ts'
import { readBackup } from '../../../core/backup/verify.ts'
import { Fault } from '../../../core/errors.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { openBackups, takeOnSchedule } from '../../../plugins/backups/backups.ts'
import type { BackupSettings } from '../../../plugins/backups/contract.ts'
import { forge, forgedManifest, write } from '../../core/backup/support.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, Reply, RequestOptions } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const { home } = gateway

function call(method: string, path: string, options?: RequestOptions): Promise<Reply<Answer>> {
	return gateway.request(method, path, options)
}

void t.test('a backup is created, listed, reported as an event and removed', async (t) => {
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	t.strictSame((await call('GET', '/v1/backups')).body, {
		backups: [],
		unreadable: [],
		folder: join(home, 'backups'),
		next_at: null,
	})
	const made = await call('POST', '/v1/backups')
	t.equal(made.status, 201)
	t.match(made.body, { trigger: 'request', includes_key: true, left_out: [], gateway_version: /^\d/ })
	t.match(made.body.file, /backups.svc-backup-\d{8}T\d{9}Z\.tar\.gz$/)
	t.equal(statSync(made.body.file).mode & 0o777, 0o600)
	t.equal(statSync(join(home, 'backups')).mode & 0o777, 0o700)
	t.equal(statSync(made.body.file).size, made.body.bytes)
	t.strictSame((await call('GET', '/v1/backups')).body.backups, [made.body])
	const { id } = made.body
	t.match((await stream.waitFor('backup.created')).payload, { backup_id: id, trigger: 'request', includes_key: true })
	t.equal((await call('DELETE', `/v1/backups/${id}`)).status, 204)
	t.match((await stream.waitFor('backup.removed')).payload, { backup_id: id, reason: 'request' })
	assertError(t, await call('DELETE', `/v1/backups/${id}`), { status: 404, code: 'not_found' })
	t.strictSame(readdirSync(join(home, 'backups')), [], 'no other file is left')
})

void t.test('one backup is made at a time', async (t) => {
	const replies = await Promise.all(Array.from({ length: 4 }, () => call('POST', '/v1/backups', { body: {} })))
	t.strictSame(replies.map(({ status }) => String(status)).toSorted(), ['201', '409', '409', '409'])
	for (const reply of replies.filter(({ status }) => status === 409))
		assertError(t, reply, { status: 409, code: 'conflict', message: /wait/ })
	for (const { id } of (await call('GET', '/v1/backups')).body.backups) await call('DELETE', `/v1/backups/${id}`)
})

void t.test('an id cannot name any other file', async (t) => {
	write(home, { 'backups/keep.txt': 'keep', 'backups/svc-backup-x.tar.gz': 'keep' })
	for (const id of [
		'..%2Fconfig%2Fgateway.yaml',
		'keep.txt',
		'x',
		'%2e%2e',
		'20300131T120000123Z%00',
		'20300131T120000123Z.tar.gz',
		`${'2'.repeat(500)}`,
	]) {
		const { status } = await call('DELETE', `/v1/backups/${id}`)
		t.ok(status === 400 || status === 404, `${id}: ${status}`)
	}
	t.ok(existsSync(join(home, 'backups/keep.txt')) && existsSync(join(home, 'config/gateway.yaml')))
	assertError(t, await call('DELETE', '/v1/backups/20300131T120000123Z'), { status: 404, code: 'not_found' })
	assertError(t, await call('POST', '/v1/backups', { body: { folder: '/tmp' } }), {
		status: 400,
		code: 'invalid_request',
	})
	rmSync(join(home, 'backups'), { recursive: true })
})

void t.test('a file that only has the name of a backup is listed as unreadable', async (t) => {
	const { body } = await call('POST', '/v1/backups')
	write(home, { 'backups/svc-backup-20200101T000000000Z.tar.gz': 'no backup' })
	const listing = (await call('GET', '/v1/backups')).body
	t.strictSame(listing.backups, [body])
	t.match(listing.unreadable, [{ id: '20200101T000000000Z', message: /damaged backup, or not a backup/ }])
	t.equal((await call('DELETE', '/v1/backups/20200101T000000000Z')).status, 204)
	t.equal((await call('DELETE', `/v1/backups/${body.id}`)).status, 204)
})

void t.test('links out of the home are omitted, and leftovers of an earlier process are removed', async (t) => {
	const outside = testFolder(t)
	write(outside, { 'secret.txt': 'not yours', 'folder/x.txt': 'not yours' })
	write(home, { 'skills/real.md': 'real', 'skills/run.sh': '#!/bin/sh\n' })
	symlinkSync(join(outside, 'secret.txt'), join(home, 'skills/out.md'))
	symlinkSync(join(outside, 'folder'), join(home, 'skills/out'))
	symlinkSync(join(home, 'skills/real.md'), join(home, 'skills/in.md'))
	symlinkSync('nowhere', join(home, 'skills/dangling.md'))
	write(home, { 'plugins/own/node_modules/other/index.js': '' })
	symlinkSync(outside, join(home, 'plugins/own/node_modules/svc-gateway'))
	const partial = partialOf(join(home, 'backups'), originOf(home))
	write(partial, { 'home/data/data.mdb': 'half', archive: 'half' })
	const { body } = await call('POST', '/v1/backups')
	const { members } = (await readBackup(body.file)).manifest
	t.strictSame(
		members
			.map(({ path }) => path)
			.filter((path) => path.startsWith('skills/'))
			.toSorted(),
		['skills/in.md', 'skills/real.md', 'skills/run.sh'],
	)
	t.strictSame(body.left_out.toSorted(), [
		'skills/dangling.md: a broken link',
		'skills/out.md: a link that leads out of the home',
		'skills/out: a link that leads out of the home',
	])
	t.notOk(existsSync(partial))
	rmSync(join(home, 'plugins/own'), { recursive: true })
	rmSync(join(home, 'skills'), { recursive: true })
	mkdirSync(join(home, 'skills'))
})

void t.test('an unusable folder is reported, also as an event', async (t) => {
	const stream = await openStream(gateway.url)
	t.teardown(() => stream.close())
	const folder = join(home, 'backups')
	renameSync(folder, `${folder}-away`)
	writeFileSync(folder, 'in the way')
	const reply = await call('POST', '/v1/backups')
	assertError(t, reply, { status: 500, code: 'backup_failed', message: /backups/ })
	t.match((await stream.waitFor('backup.failed')).payload, { trigger: 'request', message: reply.body.message })
	rmSync(folder)
	renameSync(`${folder}-away`, folder)
	t.equal((await call('POST', '/v1/backups')).status, 201, 'the next one succeeds')
})

void t.test('every route requires the scope *', async (t) => {
	const every = [
		'agents:read',
		'agents:write',
		'runs:write',
		'vault:read',
		'vault:write',
		'tokens:admin',
		'events:read',
	]
	const { token: all } = (await call('POST', '/v1/auth/tokens', { body: { scopes: ['*'] } })).body
	const { token } = (await call('POST', '/v1/auth/tokens', { body: { scopes: every }, token: all })).body
	for (const [method, path] of [
		['POST', '/v1/backups'],
		['GET', '/v1/backups'],
		['DELETE', '/v1/backups/20300131T120000123Z'],
	] as const)
		assertError(t, await call(method, path, { token }), { status: 403, code: 'forbidden' }, `${method} ${path}`)
	t.equal((await call('GET', '/v1/backups', { token: all })).status, 200)
})

void t.test('an invalid schedule is refused; a valid one shows its next time', async (t) => {
	const change = async (section: string): Promise<string | null> => {
		write(home, { 'config/gateway.yaml': `# changed\nbackups:\n${section}` })
		await gateway.running.gateway.reload().catch(() => {})
		return gateway.running.gateway.status.configError()
	}
	t.match(await change('  schedule: "* * * * * *"\n'), /schedule.*five cron fields/)
	t.match(await change('  schedule: soon\n'), /schedule.*five cron fields/)
	t.match(await change('  schedule: "0 0 31 2 *"\n'), /match some time/)
	t.match(await change('  timezone: Mars/Olympus\n'), /timezone.*name of a time zone/)
	t.equal(await change('  schedule: "0 3 * * *"\n  timezone: UTC\n  folder: other\n  include_key: false\n'), null)
	const listing = (await call('GET', '/v1/backups')).body
	t.match(listing.next_at, /T03:00:00\.000Z$/)
	t.equal(listing.folder, join(home, 'other'))
	const made = (await call('POST', '/v1/backups')).body
	t.equal(made.includes_key, false)
	t.notOk((await readBackup(made.file)).manifest.members.some(({ path }) => path.startsWith('keys/')))
})

type BackupContext = Parameters<typeof openBackups>[0]

/** The plugin's service on a new engine, with its events and troubles. */
async function service(t: Test, settings: Partial<BackupSettings> = {}) {
	const folder = testFolder(t)
	write(folder, { 'home/config/gateway.yaml': '{}\n' })
	const engine = await openLmdb({ path: join(folder, 'home/data') })
	t.teardown(() => engine[Symbol.asyncDispose]())
	const events: { type: string; payload: Record<string, unknown> }[] = []
	const troubles: (string | null)[] = []
	const abort = new AbortController()
	const releases: (() => unknown)[] = []
	const ctx = {
		config: {
			schedule: null,
			timezone: null,
			folder: join(folder, 'backups'),
			keep: 1,
			include_key: true,
			min_free_mib: 1,
			...settings,
		},
		gateway: { home: join(folder, 'home'), version: '0.1.0' },
		snapshots: engine.snapshots,
		signal: abort.signal,
		log: { error() {}, warn() {} },
		async emit({ event_type, payload }: { event_type: string; payload: Record<string, unknown> }) {
			events.push({ type: event_type, payload })
		},
		trouble: (message: string | null) => void troubles.push(message),
		defer: (release: () => unknown) => void releases.push(release),
	} as unknown as BackupContext
	const release = async (): Promise<void> => {
		abort.abort()
		for (const one of releases.toReversed()) await one()
	}
	return { backups: openBackups(ctx), events, troubles, folder: join(folder, 'backups'), release, ctx }
}

/** The service with a schedule whose backups the test takes. */
function openScheduled(ctx: BackupContext) {
	let take = (): Promise<void> => Promise.reject(new Error('the service has opened no schedule'))
	const backups = openBackups(ctx, (_settings, handle) => {
		take = handle
		return { next: () => null, stop: () => {} }
	})
	return { backups, take }
}

void t.test('retention removes the oldest scheduled backups of this home, and nothing else', async (t) => {
	const { events, folder, ctx } = await service(t)
	const { backups, take } = openScheduled(ctx)
	const first = await backups.create('request')
	const foreign = await backups.create('schedule')
	for (let n = 0; n < 2; n++) await take()
	const { backups: left } = await backups.list()
	t.strictSame(
		left.map(({ trigger }) => trigger),
		['request', 'schedule'],
	)
	t.equal(left[0]?.id, first.id)
	t.equal(
		events.filter(({ type, payload }) => type === 'backup.removed' && payload['reason'] === 'retention').length,
		2,
	)
	t.notOk(existsSync(foreign.file))
	t.ok(readdirSync(folder).every((name) => name.startsWith('svc-backup-')))
})

void t.test('a backup made while the clock was ahead does not displace new ones', async (t) => {
	const { folder, ctx } = await service(t)
	const { backups, take } = openScheduled(ctx)
	const id = '20990101T000000000Z'
	const about = { id, created_at: '2099-01-01T00:00:00.000Z', trigger: 'schedule' } as const
	mkdirSync(folder)
	const manifest = forgedManifest([], { ...about, origin: originOf(ctx.gateway.home) })
	await forge(join(folder, `svc-backup-${id}.tar.gz`), manifest, [])
	await take()
	const { backups: left } = await backups.list()
	t.equal(left.length, 1)
	t.ok(Date.parse(left[0]?.created_at ?? '') <= Date.now())
})

void t.test('the origin of a home is stable, and unique', async (t) => {
	const { ctx } = await service(t)
	const before = originOf(ctx.gateway.home)
	t.equal(originOf(ctx.gateway.home), before)
	const other = testFolder(t)
	t.not(originOf(other), before)
	t.equal(statSync(join(other, 'run/backup-origin')).mode & 0o777, 0o600)
})

void t.test('a pipe in the folder does not block the list', { skip: process.platform === 'win32' }, async (t) => {
	const { backups, folder } = await service(t)
	mkdirSync(folder)
	const ids = Array.from({ length: 8 }, (_, n) => `2020010${n}T000000000Z`)
	for (const id of ids) spawnSync('mkfifo', [join(folder, `svc-backup-${id}.tar.gz`)])
	const { unreadable } = await backups.list()
	t.strictSame(
		unreadable.map(({ id }) => id),
		ids,
	)
	t.match(unreadable[0]?.message, /not a regular file/)
})

void t.test('a link does not bring an excluded key along, and other files in keys/ are not keys', async (t) => {
	const { ctx } = await service(t)
	const { home } = ctx.gateway
	write(home, { 'keys/vault.key': 'key', 'skills/a.md': 'a', 'plugins/b/b.js': 'b' })
	symlinkSync('../keys/vault.key', join(home, 'skills/link'))
	symlinkSync('../data/data.mdb', join(home, 'skills/base'))
	symlinkSync('../plugins/b/b.js', join(home, 'skills/b.js'))
	const bare = openBackups({ ...ctx, config: { ...ctx.config, include_key: false } })
	const made = await bare.create('request')
	const { members } = (await readBackup(made.file)).manifest
	t.strictSame(members.map(({ path }) => path).toSorted(), [
		'config/gateway.yaml',
		'data/data.mdb',
		'plugins/b/b.js',
		'skills/a.md',
		'skills/b.js',
	])
	t.match(made.left_out.toSorted(), [/^skills\/base: a link/, /^skills\/link: a link/])
	renameSync(join(home, 'keys/vault.key'), join(home, 'keys/README'))
	t.equal((await openBackups(ctx).create('request')).includes_key, false)
})

void t.test('a scheduled backup that fails is shown as trouble until the next succeeds', async (t) => {
	const { troubles, folder, ctx, events } = await service(t)
	const { take } = openScheduled(ctx)
	writeFileSync(folder, 'in the way')
	await take()
	t.match(troubles.at(-1), /scheduled backup failed.*backups/)
	t.match(events.at(-1), { type: 'backup.failed', payload: { trigger: 'schedule' } })
	rmSync(folder)
	await take()
	t.equal(troubles.at(-1), null)
})

void t.test('the vault key and the database are from the same moment', async (t) => {
	const { ctx, backups, events, folder } = await service(t)
	const key = join(ctx.gateway.home, 'keys/vault.key')
	write(ctx.gateway.home, { 'keys/vault.key': 'old' })
	const { snapshots } = ctx
	let copies = 0
	let changes = 1
	Object.assign(ctx, {
		snapshots: {
			size: () => snapshots.size(),
			async take(to: string) {
				await snapshots.take(to)
				if (copies++ < changes) writeFileSync(key, `new ${copies}`)
			},
		},
	})
	const { file } = await backups.create('request')
	t.equal(copies, 2)
	const into = testFolder(t)
	await readBackup(file, { into })
	t.equal(readFileSync(join(into, 'keys/vault.key'), 'utf8'), 'new 1')
	changes = Infinity
	await t.rejects(backups.create('request'), { code: 'backup_failed', message: /changed during every attempt/ })
	t.match(events.at(-1), { type: 'backup.failed' })
	t.equal(readdirSync(folder).length, 1)
})

void t.test('backups in the plugins folder are not in the next one', async (t) => {
	const { ctx } = await service(t)
	const folder = join(ctx.gateway.home, 'plugins/mine/backups')
	write(ctx.gateway.home, { 'plugins/mine/index.js': '' })
	const backups = openBackups({ ...ctx, config: { ...ctx.config, folder } })
	await backups.create('request')
	mkdirSync(join(folder, '.verify-left'))
	utimesSync(join(folder, '.verify-left'), 1, 1)
	const { file } = await backups.create('request')
	t.strictSame(
		(await readBackup(file)).manifest.members.map(({ path }) => path),
		['config/gateway.yaml', 'plugins/mine/index.js', 'data/data.mdb'],
	)
	t.notOk(existsSync(join(folder, '.verify-left')), 'the leftover of an earlier verification is removed')
})

void t.test('a schedule takes backups, one at a time, until it is stopped', async (t) => {
	const { promise, resolve } = Promise.withResolvers<void>()
	let taken = 0
	const began = Date.now()
	const schedule = takeOnSchedule({ schedule: '* * * * * *', timezone: 'UTC' }, async () => {
		taken++
		await promise
	})
	t.ok(Date.parse(schedule.next() ?? '') > began - 1)
	await eventually(() => taken > 0)
	schedule.stop()
	resolve()
	t.equal(taken, 1)
	t.equal(schedule.next(), null)
})

void t.test('without enough free space no backup is begun', async (t) => {
	const { backups, folder, events } = await service(t, { min_free_mib: 1024 ** 3 })
	await t.rejects(backups.create('request'), {
		code: 'storage_full',
		message: /MiB are free and \d+ MiB must stay free/,
	})
	t.strictSame(readdirSync(folder), [])
	t.equal(events.at(-1)?.type, 'backup.failed')
})

void t.test('a disk that becomes full is reported, and nothing is left on it', async (t) => {
	const { ctx } = await service(t)
	const folder = testFolder(t)
	if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder]).status !== 0)
		return t.comment('cannot mount')
	t.teardown(() => spawnSync('umount', [folder]))
	const snapshots = { size: () => 0, take: (to: string) => ctx.snapshots.take(to) }
	write(ctx.gateway.home, { 'skills/large.bin': randomBytes(200_000) })
	for (const fill of [0, 250_000]) {
		write(folder, { filler: Buffer.alloc(fill) })
		const config = { ...ctx.config, folder, min_free_mib: -64 }
		const backups = openBackups({ ...ctx, snapshots, config } as BackupContext)
		await t.rejects(backups.create('request'), { code: 'storage_full' }, String(fill))
		t.strictSame(readdirSync(folder), ['filler'])
	}
	await ctx.snapshots.take(testFolder(t))
})

void t.test('a stop of the plugin cancels a backup in progress, which leaves nothing', async (t) => {
	const { backups, folder, release } = await service(t)
	const creation = backups.create('request').catch((error: unknown) => error)
	while (!existsSync(folder) || readdirSync(folder).length === 0) await new Promise((soon) => setImmediate(soon))
	await release()
	const error = await creation
	t.ok(error instanceof Fault && error.code === 'backup_failed', String(error))
	t.match((error as Fault).message, /was cancelled/)
	t.strictSame(existsSync(folder) ? readdirSync(folder) : [], [])
})
