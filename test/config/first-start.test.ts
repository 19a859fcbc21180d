import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { prepareHome, readConfig } from '../../core/host/config.ts'
import { canMount, journaledDisk, smallDisk } from '../support/small-disk.ts'

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

void t.test('a first start creates the folders and closes them to other users', (t) => {
	const home = join(t.testdir({}), 'deep/home')
	t.same(prepareHome(home), { first: true, notes: [] })
	for (const folder of ['', 'config', 'data', 'plugins', 'skills', 'keys', 'run'])
		t.equal(modeOf(join(home, folder)), '700', folder)
	for (const file of ['gateway.yaml', 'gateway.schema.json']) t.equal(modeOf(join(home, 'config', file)), '600', file)
	t.end()
})

void t.test('an error names the file or link that is in the place of a folder', (t) => {
	for (const folder of ['config', 'data', 'plugins', 'skills', 'keys', 'run']) {
		const message = new RegExp(`/${folder} is not a folder; move it away`)
		t.throws(() => prepareHome(t.testdir({ [folder]: 'a file' })), { code: 'config_invalid', message })
	}
	t.throws(() => prepareHome(join(t.testdir({ home: 'a file' }), 'home')), { message: /\/home is not a folder/ })
	t.throws(() => prepareHome(t.testdir({ data: t.fixture('symlink', 'away/data') })), {
		message: /\/data is a link to away\/data, which does not exist; mount the disk/,
	})
	t.end()
})

void t.test('the file of a first start can be read', (t) => {
	const home = t.testdir({})
	prepareHome(home)
	t.equal(readConfig({ home, env: {} }).server.port, 3000)
	t.match(JSON.parse(readFileSync(join(home, 'config/gateway.schema.json'), 'utf8')), {
		$schema: 'https://json-schema.org/draft/2020-12/schema',
	})
	t.end()
})

void t.test('a later start changes nothing', (t) => {
	const home = t.testdir({})
	prepareHome(home)
	const past = new Date('2001-01-01')
	const files = ['gateway.yaml', 'gateway.schema.json'].map((file) => join(home, 'config', file))
	for (const file of files) utimesSync(file, past, past)
	t.same(prepareHome(home), { first: false, notes: [] })
	for (const file of files) t.same(statSync(file).mtime, past, file)
	t.end()
})

void t.test('gateway.yaml is never rewritten, not even a broken one', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': 'a: [' } })
	t.equal(prepareHome(home).first, false)
	t.equal(readFileSync(join(home, 'config/gateway.yaml'), 'utf8'), 'a: [')
	t.end()
})

void t.test('a gateway.yaml that is a dangling link is left unchanged', (t) => {
	const home = t.testdir({ config: {} })
	symlinkSync(join(home, 'elsewhere.yaml'), join(home, 'config/gateway.yaml'))
	t.equal(prepareHome(home).first, false)
	t.notOk(existsSync(join(home, 'elsewhere.yaml')))
	t.end()
})

void t.test('an altered, outdated, empty or missing schema is replaced', (t) => {
	const home = t.testdir({})
	prepareHome(home)
	const file = join(home, 'config/gateway.schema.json')
	const current = readFileSync(file, 'utf8')
	const cases: Record<string, () => void> = {
		altered: () => writeFileSync(file, current.replace('"host"', '"hots"')),
		old: () => writeFileSync(file, current.replace('{\n', '{\n\t"$comment": "Written by the gateway.",\n')),
		empty: () => writeFileSync(file, ''),
		missing: () => rmSync(file),
	}
	for (const [name, damage] of Object.entries(cases)) {
		damage()
		t.same(prepareHome(home).notes, [], name)
		t.equal(readFileSync(file, 'utf8'), current, name)
	}
	t.end()
})

void t.test('a schema that cannot be written does not stop the start', (t) => {
	const home = t.testdir({ config: { 'gateway.yaml': '', 'gateway.schema.json': { sub: {} } } })
	t.match(prepareHome(home), { first: false, notes: [/schema for editors could not be written/] })
	t.end()
})

void t.test('key files that other users could read are closed, with a note to the operator', (t) => {
	const home = t.testdir({ keys: { 'vault.key': 'x', 'safe.key': 'x', old: {} } })
	chmodSync(join(home, 'keys'), 0o755)
	chmodSync(join(home, 'keys/vault.key'), 0o644)
	chmodSync(join(home, 'keys/safe.key'), 0o400)
	chmodSync(join(home, 'keys/old'), 0o770)
	const { notes } = prepareHome(home)
	t.equal(modeOf(join(home, 'keys')), '700')
	t.equal(modeOf(join(home, 'keys/vault.key')), '600')
	t.equal(modeOf(join(home, 'keys/safe.key')), '400', 'a stricter mode stays')
	t.equal(modeOf(join(home, 'keys/old')), '700')
	t.equal(notes.length, 3)
	t.ok(notes.some((note) => /vault\.key was open to other users \(0644\) and is now 0600/.test(note)))
	t.same(prepareHome(home).notes, [], 'the note appears once')
	t.end()
})

void t.test('the error of a home that cannot be created states what to change', (t) => {
	const dir = t.testdir({ file: '' })
	t.throws(() => prepareHome(join(dir, 'file/home')), { code: 'config_invalid', message: /set SVC_HOME to a folder/ })
	t.end()
})

void t.test('a full disk leaves no incomplete gateway.yaml', { skip: !canMount }, (t) => {
	const disk = smallDisk(t, '128k')
	const filler = join(disk, 'filler')
	writeFileSync(filler, Buffer.alloc(120 * 1024))
	t.throws(() => prepareHome(join(disk, 'home')), { message: /ENOSPC.*; free some space on its disk/ })
	rmSync(filler)
	t.equal(prepareHome(join(disk, 'home')).first, true)
	t.equal(readConfig({ home: join(disk, 'home'), env: {} }).server.port, 3000)
	t.end()
})

void t.test('a power cut after a first start leaves no empty gateway.yaml', { skip: !canMount }, (t) => {
	const disk = journaledDisk(t)
	if (!disk) {
		t.comment('this machine cannot mount a file as a disk')
		return t.end()
	}
	prepareHome(join(disk.folder, 'home'))
	// As the vault writes its key: the flush also puts the names of all files on the disk.
	writeFileSync(join(disk.folder, 'home/keys/vault.key'), 'x', { flush: true })
	const home = join(disk.afterPowerCut(), 'home')
	t.equal(readConfig({ home, env: {} }).server.port, 3000)
	t.equal(
		readFileSync(join(home, 'config/gateway.yaml'), 'utf8'),
		readFileSync(join(disk.folder, 'home/config/gateway.yaml'), 'utf8'),
	)
	t.end()
})
