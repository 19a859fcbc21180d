/** Reads a zip archive by its central directory. */
import { crc32 } from 'node:zlib'
import type { Entry, ZipFile } from 'yauzl'
import { Fault, messageOf } from '../../../core/errors.ts'
import { allBytes } from '../../../core/util/all-bytes.ts'
import { once } from '../../shared/once.ts'
import { ENTRIES_LIMIT, FOLDER_LIMIT_BYTES } from './contract.ts'
import type { Archive, ArchiveEntry } from './contract.ts'

export function openZip(bytes: Buffer): Archive {
	const opened = once(() => open(bytes))
	return {
		entries: async () => (await opened()).entries.map(described),
		async read(places) {
			const { zip, entries } = await opened()
			const contents = new Map<number, Uint8Array>()
			let room = FOLDER_LIMIT_BYTES
			for (const place of places) {
				const entry = entries[place]
				if (!entry) continue
				const content = await contentOf(zip, entry, room)
				room -= content.length
				contents.set(place, content)
			}
			return contents
		},
	}
}

async function open(bytes: Buffer): Promise<{ zip: ZipFile; entries: Entry[] }> {
	const { fromBufferPromise } = await import('yauzl')
	try {
		const zip = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: true })
		if (zip.entryCount > ENTRIES_LIMIT) throw tooMany()
		const entries: Entry[] = []
		for await (const entry of zip.eachEntry()) if (entries.push(entry) > ENTRIES_LIMIT) throw tooMany()
		return { zip, entries }
	} catch (error) {
		throw damaged(error)
	}
}

/** The upper half of the external attributes is the Unix mode, if the archive has one. */
function described({ fileName, externalFileAttributes, uncompressedSize }: Entry): ArchiveEntry {
	const type = (externalFileAttributes >>> 28) & 0o17
	const kind = fileName.endsWith('/') || type === 0o04 ? 'folder' : type === 0o12 ? 'link' : 'file'
	const isSpecial = kind === 'file' && type !== 0 && type !== 0o10
	return { name: fileName, kind: isSpecial ? 'special' : kind, size: uncompressedSize }
}

async function contentOf(zip: ZipFile, entry: Entry, room: number): Promise<Uint8Array> {
	const { fileName, uncompressedSize } = entry
	if (uncompressedSize > room) throw tooLarge()
	if (entry.isEncrypted())
		throw new Fault('skill_invalid', `${fileName} is encrypted; make an archive without a password`)
	try {
		// The stream fails as soon as there are more bytes than the entry states.
		const content = await allBytes(await zip.openReadStreamPromise(entry), room, tooLarge)
		if (crc32(content) === entry.crc32) return content
		throw new Error(`${fileName} does not match its checksum`)
	} catch (error) {
		throw damaged(error)
	}
}

function damaged(error: unknown): Fault {
	if (error instanceof Fault) return error
	return new Fault('skill_invalid', `the zip archive cannot be read: ${messageOf(error)}`, { cause: error })
}

export function tooMany(): Fault {
	return new Fault(
		'skill_invalid',
		`the archive has more than ${ENTRIES_LIMIT} entries; make an archive of only the skill`,
	)
}

export function tooLarge(): Fault {
	return new Fault(
		'skill_invalid',
		`the skill has more than ${FOLDER_LIMIT_BYTES / 1024 / 1024} MiB; remove what it does not need`,
	)
}
