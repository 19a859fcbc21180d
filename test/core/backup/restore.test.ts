/** The effects of a restore on its home, and of one that was killed. */
import { fork, spawnSync } from 'node:child_process'
import { on, once } from 'node:events'
import {
	cpSync,
	existsSync,
	lchownSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { readConfig } from '../../../core/host/config.ts'
import { isHalfPlaced, journalOf, finishRestore } from '../../../core/backup/place.ts'
import type { Placement } from '../../../core/backup/place.ts'
import { restoreBackup } from '../../../core/backup/restore.ts'
import type { Restored } from '../../../core/backup/restore.ts'
import { lockHome } from '../../../core/process/lock.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import { homeFiles, smallBackup, write } from './support.ts'
import { testFolder } from '../../support/folder.ts'

const kills = Number(process.env['RESTORE_KILLS'] ?? 1)
const folder = testFolder(t)
const { file } = await smallBackup(folder)
const oldFiles = {
	'config/gateway.yaml': 'legacy:\n  port: 0\n',
	'keys/vault.key': 'old',
	'data/data.mdb': 'old',
	'plugins/old/index.js': 'old',
	'unrelated.txt': 'stays',
	'backups/note.txt': 'stays',
}

function restore(home: string, options: { force?: boolean; file?: string } = {}): Promise<Restored> {
	return restoreBackup({
		file,
		home,
		force: false,
		storeOf: (at) => readConfig({ home: at, env: {} }).store.path,
		...options,
	})
}

/** The content of every file below a folder, by relative path. */
function filesIn(home: string): Record<string, string> {
	const entries = readdirSync(home, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
	const paths = entries.map((entry) => relative(home, join(entry.parentPath, entry.name)))
	return Object.fromEntries(paths.toSorted().map((path) => [path, readFileSync(join(home, path), 'latin1')]))
}

async function recordsIn(home: string, store = 'data'): Promise<unknown[]> {
	await using engine = await openLmdb({ path: join(home, store) })
	return (await Array.fromAsync(engine.store.list(['small']))).map(({ value }) => value)
}

function without(files: Record<string, string>, ...paths: string[]): Record<string, string> {
	return Object.fromEntries(Object.entries(files).filter(([path]) => !paths.includes(path)))
}

void t.test('a backup omits a link to itself, and reports that', async (t) => {
	const at = join(folder, 'loop')
	mkdirSync(join(at, 'home/skills'), { recursive: true })
	symlinkSync('self', join(at, 'home/skills/self'))
	t.match(await smallBackup(at), { left_out: ['skills/self: a broken link'] })
})

void t.test('a restored home has every file, closed to other users', async (t) => {
	const home = join(folder, 'a', 'fresh')
	const { aside, notes, manifest } = await restore(home)
	t.equal(aside, null)
	t.strictSame(notes, [])
	t.equal(manifest.includes_key, true)
	t.strictSame(without(filesIn(home), 'data/data.mdb'), homeFiles)
	for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
		const mode = statSync(join(entry.parentPath, entry.name)).mode & 0o777
		t.equal(mode, entry.isDirectory() ? 0o700 : 0o600, entry.name)
	}
	t.equal(statSync(home).mode & 0o777, 0o700)
	const records = await recordsIn(home)
	t.equal(records.length, 20)
	t.ok(records.some((one) => (one as { text: string }).text === 'record 19'))
	t.strictSame(readdirSync(join(folder, 'a')), ['fresh'], 'no other folder is left')
})

void t.test('a nonempty home is replaced only with --force, and kept aside', async (t) => {
	const home = join(folder, 'b', 'home')
	write(home, oldFiles)
	await t.rejects(restore(home), { code: 'conflict', message: /--force/ })
	t.strictSame(filesIn(home), oldFiles, 'nothing has changed')

	const { aside } = await restore(home, { force: true })
	t.match(aside, /home\.before-restore-\d{8}T\d{9}Z$/)
	const { 'unrelated.txt': unrelated, 'backups/note.txt': note, ...old } = oldFiles
	t.strictSame(filesIn(aside ?? ''), old)
	t.strictSame(without(filesIn(home), 'data/data.mdb'), {
		'backups/note.txt': note,
		...homeFiles,
		'unrelated.txt': unrelated,
	})
	t.equal((await recordsIn(home)).length, 20)
	t.notOk(existsSync(`${home}.restoring`))
	t.notOk(isHalfPlaced(home))
})

void t.test('the empty folders that svc init creates do not prevent a restore', async (t) => {
	const home = join(folder, 'c')
	for (const name of ['config', 'data', 'plugins', 'skills', 'keys', 'run'])
		mkdirSync(join(home, name), { recursive: true })
	await restore(home)
	t.strictSame(without(filesIn(home), 'data/data.mdb'), homeFiles)
})

void t.test('a home in use is refused and not changed', async (t) => {
	const home = join(folder, 'd')
	write(home, oldFiles)
	mkdirSync(join(home, 'run'))
	await using _lock = await lockHome(home)
	await t.rejects(restore(home, { force: true }), { code: 'home_in_use' })
	t.strictSame(filesIn(home), oldFiles)
})

void t.test('a damaged backup changes nothing', async (t) => {
	const home = join(folder, 'e', 'home')
	write(home, oldFiles)
	const bytes = readFileSync(file)
	bytes[500] = (bytes[500] as number) ^ 1
	const broken = join(folder, 'broken.tar.gz')
	writeFileSync(broken, bytes)
	await t.rejects(restore(home, { force: true, file: broken }), { code: 'backup_damaged' })
	t.strictSame(filesIn(home), oldFiles)
	t.strictSame(readdirSync(join(folder, 'e')), ['home'])
	await t.rejects(restore(join(folder, 'e', 'new', 'home'), { file: broken }), { code: 'backup_damaged' })
	t.strictSame(readdirSync(join(folder, 'e')), ['home'], 'no folder is created')
	await t.rejects(restore(home, { file: join(folder, 'nothing') }), { code: 'not_found' })
})

void t.test('a backup without the key keeps the key of the home, with a note', async (t) => {
	const bare = await smallBackup(join(folder, 'f'), { includeKey: false })
	const home = join(folder, 'f', 'target')
	const first = await restore(home, { file: bare.file })
	t.equal(first.manifest.includes_key, false)
	t.match(first.notes, [/does not contain the vault's key.*keys.vault\.key/])
	t.notOk(existsSync(join(home, 'keys/vault.key')))
	write(home, { 'keys/vault.key': 'mine' })
	await restore(home, { file: bare.file, force: true })
	t.equal(readFileSync(join(home, 'keys/vault.key'), 'utf8'), 'mine')
})

void t.test('the database is restored to the store.path of the restored settings', async (t) => {
	const inside = await smallBackup(join(folder, 'g'), { files: { 'config/gateway.yaml': 'store:\n  path: deep/db\n' } })
	const home = join(folder, 'g', 'target')
	const placed = await restore(home, { file: inside.file })
	t.match(placed.notes, [/does not contain the vault's key/])
	t.equal(placed.notes.length, 1)
	t.equal((await recordsIn(home, 'deep/db')).length, 20)
	t.notOk(existsSync(join(home, 'data')))

	for (const path of ['data/deeper', 'keys', 'backups/db']) {
		const odd = await smallBackup(join(folder, 'odd', path), {
			files: { 'config/gateway.yaml': `store:\n  path: ${path}\n` },
		})
		const home = join(folder, 'odd', path, 'target')
		write(home, { 'backups/note.txt': 'stays', 'data/data.mdb': 'old' })
		await restore(home, { file: odd.file, force: true })
		t.equal((await recordsIn(home, path)).length, 20, path)
		t.ok(existsSync(join(home, 'backups/note.txt')), path)
	}

	const outside = await smallBackup(join(folder, 'h'), {
		files: { 'config/gateway.yaml': 'store:\n  path: /srv/elsewhere\n' },
	})
	const fallback = join(folder, 'h', 'target')
	const { notes } = await restore(fallback, { file: outside.file })
	t.match(notes[0], /store\.path .* is \/srv\/elsewhere, outside of the home.*set store\.path to "data"/)
	t.equal((await recordsIn(fallback)).length, 20)

	const unset = await smallBackup(join(folder, 'i'), {
		files: { 'config/gateway.yaml': 'server:\n  host: ${NOT_SET_HERE}\n' },
	})
	const unreadable = join(folder, 'i', 'target')
	t.match((await restore(unreadable, { file: unset.file })).notes[0], /settings cannot be read here.*NOT_SET_HERE/s)
	t.equal((await recordsIn(unreadable)).length, 20)
})

void t.test('a home that is the root of a disk, such as the volume of a container, is restored', async (t) => {
	const home = join(folder, 'volume')
	mkdirSync(home)
	if (!mounted(t, home, '-t', 'tmpfs', '-o', 'size=16m', 'tmpfs')) return
	await restore(home)
	t.equal((await recordsIn(home)).length, 20)
	const { aside } = await restore(home, { force: true })
	t.equal(dirname(aside ?? ''), home, 'the former files are kept on the same disk')
	t.ok(existsSync(join(aside ?? '', 'data/data.mdb')))
	t.equal((await recordsIn(home)).length, 20)
})

/** False, with a comment, if this user cannot mount. */
function mounted(t: Test, at: string, ...args: string[]): boolean {
	if (spawnSync('mount', [...args, at]).status !== 0) {
		t.comment('cannot mount')
		return false
	}
	t.teardown(() => spawnSync('umount', [at]))
	return true
}

void t.test('a home with a separate disk mounted inside is refused and not changed', async (t) => {
	const home = join(folder, 'parted', 'home')
	write(home, oldFiles)
	const data = join(home, 'data')
	if (!mounted(t, data, '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs')) return
	write(data, { 'data.mdb': 'old' })
	await t.rejects(restore(home, { force: true }), {
		code: 'unavailable',
		message: /is unchanged.*data is on a separate disk/,
	})
	t.strictSame(filesIn(home), oldFiles)
	t.notOk(isHalfPlaced(home))
	t.strictSame(readdirSync(join(folder, 'parted')), ['home'], 'no other folder is left')
})

void t.test('a home that is a bind mount on the same disk is restored', async (t) => {
	const [home, source] = [join(folder, 'bound', 'home'), join(folder, 'bound', 'source')]
	mkdirSync(home, { recursive: true })
	mkdirSync(source)
	if (!mounted(t, home, '--bind', source)) return
	await restore(home)
	const { aside } = await restore(home, { force: true })
	t.equal(dirname(aside ?? ''), home)
	t.equal((await recordsIn(home)).length, 20)
})

void t.test('root restores files to the owner of the home', async (t) => {
	if (process.getuid?.() !== 0) return t.comment('not root')
	const home = join(folder, 'owned')
	write(home, { 'config/gateway.yaml': '{}\n', 'data/data.mdb': 'old' })
	for (const path of ['.', 'config', 'config/gateway.yaml', 'data', 'data/data.mdb'])
		lchownSync(join(home, path), 4321, 4321)
	const { aside } = await restore(home, { force: true })
	for (const root of [home, aside ?? ''])
		for (const name of ['.', ...readdirSync(root, { recursive: true, encoding: 'utf8' })])
			t.equal(statSync(join(root, name)).uid, 4321, join(root, name))
})

void t.test('a restore that was interrupted after any of its moves is finished', async (t) => {
	const names = ['config', 'data', 'keys', 'plugins', 'skills']
	const complete = join(folder, 'j', 'complete')
	await restore(complete)
	const wanted = filesIn(complete)
	for (let done = 0; done <= 2 * names.length; done++) {
		const home = join(folder, 'j', `home-${done}`)
		const staging = `${home}.restoring`
		write(home, { ...oldFiles, 'skills/old.md': 'old' })
		for (const name of names) cpSync(join(complete, name), join(staging, name), { recursive: true })
		const placement: Placement = {
			aside: names.map((name) => ({ from: join(home, name), to: join(`${home}.aside`, name) })),
			into: names.map((name) => ({ from: join(staging, name), to: join(home, name) })),
			staging,
		}
		writeFileSync(journalOf(home), JSON.stringify(placement))
		for (const { from, to } of [...placement.aside, ...placement.into].slice(0, done)) {
			mkdirSync(dirname(to), { recursive: true })
			renameSync(from, to)
		}
		mkdirSync(join(home, 'run'))
		await finishRestore(home)
		t.notOk(isHalfPlaced(home) || existsSync(staging), `after ${done} moves`)
		t.strictSame(without(filesIn(home), 'unrelated.txt', 'backups/note.txt'), wanted, `after ${done} moves`)
		t.equal(filesIn(`${home}.aside`)['data/data.mdb'], 'old', 'the former data is kept')
		await finishRestore(home)
		t.strictSame(without(filesIn(home), 'unrelated.txt', 'backups/note.txt'), wanted, 'finishing again changes nothing')
	}
})

void t.test(`a restore that is killed (${kills} times) leaves the old home, or can be finished`, async (t) => {
	const home = join(folder, 'k', 'home')
	const seen = { old: 0, half: 0, new: 0 }
	for (let kill = 0; kill < kills; kill++) {
		rmSync(join(folder, 'k'), { recursive: true, force: true })
		write(home, oldFiles)
		const child = fork(fileURLToPath(new URL('./restore-child.ts', import.meta.url)), [file, home], { stdio: 'ignore' })
		const exit = once(child, 'exit')
		// Half of the kills while it reads, half while it moves files, each a little later than the one before.
		const step = kill % 2 === 0 ? 'reading the backup' : 'moving it into place'
		for await (const [message] of on(child, 'message')) if (message === step) break
		const until = performance.now() + (kill * 40) / kills
		while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve))
		child.kill('SIGKILL')
		await exit
		const isHalf = isHalfPlaced(home)
		await finishRestore(home)
		const found = without(filesIn(home), 'run/gateway.lock')
		const isOld = found['data/data.mdb'] === 'old'
		seen[isHalf ? 'half' : isOld ? 'old' : 'new']++
		if (isOld) t.strictSame(found, oldFiles, 'the old home is unchanged')
		else {
			t.strictSame(without(found, 'data/data.mdb', 'unrelated.txt', 'backups/note.txt'), homeFiles)
			t.equal((await recordsIn(home)).length, 20)
		}
		await restore(home, { force: true })
		t.equal((await recordsIn(home)).length, 20, 'the next restore succeeds')
	}
	t.comment(seen)
})
