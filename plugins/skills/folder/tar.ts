/** Reads a gzipped tar archive. Each read unpacks it again, up to a limit. */
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import { Fault, messageOf } from '../../../core/errors.ts'
import { ENTRIES_LIMIT, FOLDER_LIMIT_BYTES } from './contract.ts'
import type { Archive, ArchiveEntry } from './contract.ts'
import { tooLarge, tooMany } from './zip.ts'

/** Limit of the unpacked bytes of an archive, including files outside of the skill. */
const UNPACKED_LIMIT = 256 * 1024 * 1024
const SLICE = 64 * 1024
/** Limit of bytes of an extended header. */
const HEADER_LIMIT = 64 * 1024

const files = new Set(['File', 'OldFile', 'ContiguousFile'])
const links = new Set(['Link', 'SymbolicLink'])
const folders = new Set(['Directory', 'GNUDumpDir'])
/** Warnings of the parser that do not mean that other parsers read the archive differently. */
const harmless = new Set(['TAR_ENTRY_INFO', 'TAR_ENTRY_UNSUPPORTED', 'TAR_ENTRY_ERROR'])

export function openTar(bytes: Buffer): Archive {
	return {
		async entries() {
			const found: ArchiveEntry[] = []
			await walk(bytes, (entry) => {
				if (found.push({ name: entry.path, kind: kindOf(entry), size: entry.size }) > ENTRIES_LIMIT) throw tooMany()
			})
			return found
		},
		async read(places) {
			const contents = new Map<number, Buffer[]>()
			let room = FOLDER_LIMIT_BYTES
			await walk(bytes, (entry, place) => {
				if (!places.has(place)) return
				if ((room -= entry.size) < 0) throw tooLarge()
				const parts: Buffer[] = []
				contents.set(place, parts)
				entry.on('data', (part) => void parts.push(Buffer.from(part)))
			})
			return new Map([...contents].map(([place, parts]) => [place, Buffer.concat(parts)]))
		},
	}
}

function kindOf({ type }: ReadEntry): ArchiveEntry['kind'] {
	if (files.has(type)) return 'file'
	return links.has(type) ? 'link' : folders.has(type) ? 'folder' : 'special'
}

async function walk(bytes: Buffer, seen: (entry: ReadEntry, place: number) => void): Promise<void> {
	const { Parser } = await import('tar')
	let failure: unknown
	let place = 0
	const parser = new Parser({
		brotli: false,
		zstd: false,
		maxMetaEntrySize: HEADER_LIMIT,
		onReadEntry(entry) {
			try {
				if (failure === undefined) seen(entry, place++)
			} catch (error) {
				failure = error
			}
			entry.resume()
		},
		onwarn(code, message) {
			if (!harmless.has(code)) failure ??= new Error(String(message))
		},
	})
	parser.on('error', (error) => (failure ??= error))
	try {
		await pipeline(Readable.from(slices(bytes)), createGunzip(), async (unpacked: AsyncIterable<Buffer>) => {
			let size = 0
			let ended = false
			parser.on('eof', () => (ended = true))
			for await (const part of unpacked) {
				// The parser would unpack the inner file too, beyond the limit.
				if (size === 0 && part[0] === 0x1f && part[1] === 0x8b) throw new Error('it contains another gzip file')
				size += part.length
				if (size > UNPACKED_LIMIT)
					throw new Error(
						`it has more than ${UNPACKED_LIMIT / 1024 / 1024} MiB unpacked; make an archive of only the skill`,
					)
				// Data after the end of the archive does not belong to it, and each empty block would slow the parser down.
				if (!ended) parser.write(part) // needs no backpressure, since every entry is resumed
				if (failure !== undefined) throw failure
			}
			const finished = once(parser, 'end')
			parser.end()
			await finished
		})
		if (failure !== undefined) throw failure
	} catch (error) {
		if (error instanceof Fault) throw error
		throw new Fault('skill_invalid', `the tar.gz archive cannot be read: ${messageOf(error)}`, { cause: error })
	}
}

function* slices(bytes: Buffer): Generator<Buffer> {
	for (let at = 0; at < bytes.length; at += SLICE) yield bytes.subarray(at, at + SLICE)
}
