/** Small backups for tests, sound ones and forged ones. */
import { createHash } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Header } from 'tar/header'
import type { HeaderData } from 'tar/header'
import { createBackup } from '../../../core/backup/create.ts'
import { writeEnvelope } from '../../../core/backup/envelope.ts'
import type { BackupInfo } from '../../../core/backup/list.ts'
import { manifestName } from '../../../core/backup/manifest.ts'
import type { Manifest, Member } from '../../../core/backup/manifest.ts'
import { padding, tarEnd, tarHeader } from '../../../core/backup/tar.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'

export function write(folder: string, files: Record<string, string | Buffer>): void {
	for (const [path, content] of Object.entries(files)) {
		mkdirSync(dirname(join(folder, path)), { recursive: true })
		writeFileSync(join(folder, path), content)
	}
}

export const homeFiles = {
	'config/gateway.yaml': 'log:\n  level: fatal\n',
	'keys/vault.key': `${Buffer.alloc(32, 7).toString('base64')}\n`,
	'plugins/clock/index.js': 'export default { name: "clock" }\n',
	'skills/note.md': '# A note\n',
}

/** A home with a few files and `records` records, and its backup. */
export async function smallBackup(
	folder: string,
	{
		records = 20,
		files = homeFiles,
		includeKey = true,
	}: { records?: number; files?: Record<string, string>; includeKey?: boolean } = {},
): Promise<BackupInfo & { home: string }> {
	const home = join(folder, 'home')
	write(home, files)
	await using engine = await openLmdb({ path: join(home, 'data') })
	for (let n = 0; n < records; n++) await engine.store.put(['small', `r${n}`], { n, text: `record ${n}` })
	const made = await createBackup({
		home,
		folder: join(folder, 'backups'),
		snapshots: engine.snapshots,
		trigger: 'request',
		include_key: includeKey,
		min_free_mib: 1,
	})
	return { ...made, home }
}

/** One member of a forged archive. `header` overrides the fields of a plain file. */
export interface Part {
	path: string
	content: Buffer
	header?: HeaderData
	/** Bytes in front of its header. */
	before?: Buffer
}

function memberOf({ path, content }: Part): Member {
	return {
		path,
		bytes: content.length,
		sha256: createHash('sha256').update(content).digest('hex'),
		executable: false,
	}
}

/** Writes a file with a valid envelope and any content. `manifest` comes first: text as it is, anything else as JSON. */
export async function forge(file: string, manifest: unknown, parts: Part[], end: Buffer = tarEnd): Promise<void> {
	const text = typeof manifest === 'string' ? manifest : JSON.stringify(manifest)
	async function* content(): AsyncGenerator<Buffer> {
		const first: Part = { path: manifestName, content: Buffer.from(text) }
		for (const part of [first, ...parts]) {
			if (part.before) yield part.before
			yield blockOf(part)
			yield part.content
			yield padding(part.content.length)
		}
		yield end
	}
	rmSync(file, { force: true })
	await writeEnvelope(file, content())
}

function blockOf({ path, content, header }: Part): Buffer {
	const plain = { path, bytes: content.length, executable: false, modified: '2030-01-01T00:00:00Z' }
	if (!header) return tarHeader(plain)
	const one = new Header({ path, size: content.length, mode: 0o600, type: 'File', ...header })
	one.encode()
	return one.block as Buffer
}

export function forgedManifest(parts: Part[], changes: Partial<Manifest> = {}): Manifest {
	return {
		format: 1,
		id: '20300101T000000000Z',
		created_at: '2030-01-01T00:00:00.000Z',
		trigger: 'request',
		gateway_version: '0.1.0',
		origin: 'somewhere',
		host: { platform: 'linux', arch: 'x64', node: 'v24.0.0' },
		store: { records: 1, log_records: 0, head: '0', jobs: 0 },
		includes_key: false,
		left_out: [],
		members: parts.map(memberOf),
		...changes,
	}
}
