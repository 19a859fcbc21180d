/** Forged archives with a valid envelope: nothing of them is restored, and nothing is written outside of the home. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import type { HeaderData } from 'tar/header'
import { Pax } from 'tar/pax'
import type { Manifest } from '../../../core/backup/manifest.ts'
import { restoreBackup } from '../../../core/backup/restore.ts'
import { tarEnd } from '../../../core/backup/tar.ts'
import { Fault } from '../../../core/errors.ts'
import { forge, forgedManifest, smallBackup } from './support.ts'
import type { Part } from './support.ts'
import { testFolder } from '../../support/folder.ts'

const folder = testFolder(t)
const file = join(folder, 'forged.tar.gz')
const { home } = await smallBackup(folder, { records: 1 })
const database: Part = { path: 'data/data.mdb', content: readFileSync(join(home, 'data/data.mdb')) }
const settings: Part = { path: 'config/gateway.yaml', content: Buffer.from('{}\n') }
const text = (path: string, content = 'text', header?: HeaderData): Part => ({
	path,
	content: Buffer.from(content),
	...(header && { header }),
})

async function restore(into: string): Promise<Fault | null> {
	try {
		await restoreBackup({ file, home: into, force: false, storeOf: (at) => join(at, 'data') })
		return null
	} catch (error) {
		if (error instanceof Fault) return error
		throw error
	}
}

let count = 0
async function refuses(
	t: Test,
	about: string,
	manifest: unknown,
	parts: Part[],
	message: RegExp,
	end?: Buffer,
): Promise<void> {
	await forge(file, manifest, parts, end)
	const into = join(folder, `into-${count++}`)
	const refusal = await restore(into)
	t.ok(
		refusal && ['backup_damaged', 'invalid_request', 'storage_full'].includes(refusal.code),
		`${about}: ${refusal?.code}`,
	)
	t.match(refusal?.message, message, about)
	t.notOk(existsSync(into), `${about}: no home is left`)
}

void t.test('a forged archive of plain members is restored', async (t) => {
	const parts = [settings, text('plugins/a/b/c.js'), database]
	await forge(file, forgedManifest(parts), parts)
	const into = join(folder, 'good')
	t.equal(await restore(into), null)
	t.equal(readFileSync(join(into, 'plugins/a/b/c.js'), 'utf8'), 'text')
})

void t.test('paths outside of the allowed ones are refused', async (t) => {
	for (const path of [
		'../evil',
		'/etc/evil',
		'plugins/../../evil',
		'plugins/./x',
		'plugins//x',
		'plugins/x/',
		'plugins',
		'plugins\\..\\evil',
		'plugins/a\\..\\b',
		'config/other.yaml',
		'data/lock.mdb',
		'data/data.mdb/x',
		'run/gateway.lock',
		'backups/x',
		'.ssh/authorized_keys',
		'keys/..',
		'plugins/\u0000x',
		`plugins/${'x'.repeat(2000)}`,
		'',
	]) {
		const parts = [text(path || 'x'), database]
		const manifest = forgedManifest(parts)
		manifest.members[0] = { ...(manifest.members[0] as Manifest['members'][number]), path }
		await refuses(t, JSON.stringify(path.slice(0, 40)), manifest, parts, /damaged/)
	}
	t.strictSame(
		readdirSync(folder).filter((name) => name.includes('evil')),
		[],
	)
})

void t.test('a file in the place of a folder is refused', async (t) => {
	for (const paths of [
		['plugins/a', 'plugins/a/b'],
		['plugins/a/b', 'plugins/a'],
	]) {
		const parts = [...paths.map((path) => text(path)), database]
		await refuses(t, paths.join(' '), forgedManifest(parts), parts, /damaged.*conflicts with its other files/)
	}
})

void t.test('a member that is not a regular file is refused', async (t) => {
	for (const type of [
		'SymbolicLink',
		'Link',
		'CharacterDevice',
		'BlockDevice',
		'FIFO',
		'Directory',
		'GNUDumpDir',
		'NextFileHasLongPath',
		'GlobalExtendedHeader',
		'OldExtendedHeader',
		'ContiguousFile',
		'SparseFile',
	] as const) {
		const parts = [text('plugins/x', '', { type, linkpath: '/etc/passwd' }), database]
		await refuses(t, type, forgedManifest(parts), parts, /plain file|damaged/)
	}
})

void t.test('an archive that differs from its manifest is refused', async (t) => {
	const one = text('plugins/one')
	const two = text('plugins/two')
	const parts = [one, two, database]
	const manifest = forgedManifest(parts)
	await refuses(t, 'members swapped', manifest, [two, one, database], /is missing, out of place/)
	await refuses(t, 'one missing', manifest, [one, database], /is missing, out of place/)
	await refuses(t, 'the last missing', manifest, [one, two], /is missing, out of place/)
	await refuses(
		t,
		'an additional member',
		manifest,
		[...parts, text('plugins/three')],
		/files that its manifest does not list/,
	)
	await refuses(t, 'other content', manifest, [text('plugins/one', 'tent'), two, database], /not what was stored/)
	await refuses(
		t,
		'longer content',
		manifest,
		[text('plugins/one', 'longer'), two, database],
		/is missing, out of place/,
	)
	await refuses(t, 'a duplicate', forgedManifest([one, one, database]), [one, one, database], /duplicate/)
	await refuses(t, 'no database', forgedManifest([one]), [one], /no database/)
	await refuses(t, 'data after the end', manifest, parts, /after its end/, Buffer.concat([tarEnd, Buffer.from('x')]))
	await refuses(t, 'no end', manifest, parts, /cut off/, Buffer.alloc(0))
	await refuses(t, 'half an end', manifest, parts, /cut off/, Buffer.alloc(512))
	await refuses(
		t,
		'garbage within the end',
		manifest,
		parts,
		/damaged/,
		Buffer.concat([Buffer.alloc(512), Buffer.alloc(512, 1)]),
	)
	const renamed = { ...one, before: new Pax({ path: '../evil', size: 4 }).encode() }
	await refuses(t, 'another name in an extension', manifest, [renamed, two, database], /is missing, out of place/)
})

void t.test('an invalid manifest is refused, and one of a newer gateway with both versions', async (t) => {
	const manifest = forgedManifest([database])
	for (const [about, wrong] of [
		['no JSON', '{'],
		['null', 'null'],
		['empty', ''],
		['a list', '[]'],
		['no format', JSON.stringify({ ...manifest, format: undefined })],
		['an older format', { ...manifest, format: 0 }],
		['a wrong id', { ...manifest, id: '../x' }],
		['a size below zero', { ...manifest, members: [{ ...manifest.members[0], bytes: -1 }] }],
		['a fractional size', { ...manifest, members: [{ ...manifest.members[0], bytes: 1.5 }] }],
		[
			'too many members',
			{
				...manifest,
				members: Array.from({ length: 50_002 }, (_, n) => ({ ...manifest.members[0], path: `plugins/${n}` })),
			},
		],
	] as const)
		await refuses(t, about, wrong, [database], /damaged/)
	await refuses(
		t,
		'a newer format',
		{ ...manifest, format: 2, gateway_version: '9.9.9' },
		[database],
		/format 2 and was made by version 9\.9\.9/,
	)
})

void t.test('an archive that unpacks to far more than it declares, or declares too much, is refused', async (t) => {
	const bomb = text('plugins/bomb', '')
	const manifest = forgedManifest([bomb, database])
	const zeros = Buffer.alloc(40 * 1024 ** 2)
	await refuses(t, 'more than declared', manifest, [{ ...bomb, content: zeros }, database], /is missing, out of place/)
	await refuses(
		t,
		'after the end',
		forgedManifest([database]),
		[database],
		/after its end/,
		Buffer.concat([tarEnd, zeros]),
	)
	await refuses(t, 'a manifest of zeros', zeros.toString('latin1'), [database], /does not begin with a manifest/)
	const huge = forgedManifest([database])
	huge.members[0] = { ...(huge.members[0] as Manifest['members'][number]), bytes: Number.MAX_SAFE_INTEGER }
	await refuses(t, 'a size that no disk has', huge, [database], /free/)
	const files = forgedManifest([bomb, database])
	files.members[0] = { ...(files.members[0] as Manifest['members'][number]), bytes: 5 * 1024 ** 3 }
	await refuses(t, 'files larger than a backup may contain', files, [bomb, database], /larger/)
})

void t.test('a file that is not a backup is refused', async (t) => {
	for (const content of [
		Buffer.alloc(0),
		Buffer.from('hello'),
		gzipSync('hello'),
		readFileSync(join(home, 'data/data.mdb')),
	]) {
		writeFileSync(file, content)
		t.equal((await restore(join(folder, 'none')))?.code, 'backup_damaged')
	}
	t.notOk(existsSync(join(folder, 'none')))
})

void t.test('a damaged database is refused even with correct digests', async (t) => {
	const content = Buffer.from(database.content)
	const at = content.lastIndexOf('record 0')
	t.ok(at > 0)
	content.write('record 1', at)
	const broken = { path: 'data/data.mdb', content }
	await refuses(t, 'a record', forgedManifest([broken]), [broken], /its database is damaged/)
	const empty = { path: 'data/data.mdb', content: Buffer.alloc(0) }
	await refuses(t, 'no database in the file', forgedManifest([empty]), [empty], /its database is damaged/)
})
