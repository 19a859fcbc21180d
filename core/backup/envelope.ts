/**
 * The outer format of a backup file: gzip whose header has a comment with the digest of everything that follows. Any gunzip skips
 * the comment. So one pass over the file, without unpacking, shows whether a single bit has changed.
 *
 *     1f 8b 08 10 00 00 00 00 00 ff · "svc-backup sha256=" · 64 hex digits · 00 · deflate · CRC-32 · length
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { crc32, createDeflateRaw, createGunzip } from 'node:zlib'
import { piecesOf } from './files.ts'
import { damaged } from './manifest.ts'

const start = Buffer.from('1f8b08100000000000ff', 'hex')
const label = 'svc-backup sha256='
const headBytes = start.length + label.length + 64 + 1
const pieceBytes = 256 * 1024
/** Records are JSON text: the fastest level saves most of the space in a third of the time. */
const level = 1

/** Writes `content` into a new file (0600), durable when this settles. Returns the size of the file. */
export async function writeEnvelope(path: string, content: AsyncIterable<Buffer>): Promise<number> {
	await using file = await open(path, 'wx', 0o600)
	const digest = createHash('sha256')
	let size = headBytes
	const put = async (bytes: Buffer): Promise<void> => {
		digest.update(bytes)
		await file.writeFile(bytes)
		size += bytes.length
	}
	// The head is written last, with the digest.
	await file.writeFile(Buffer.alloc(headBytes))
	let crc = 0
	let length = 0
	const counted = async function* (): AsyncGenerator<Buffer> {
		for await (const piece of content) {
			crc = crc32(piece, crc)
			length += piece.length
			yield piece
		}
	}
	await pipeline(counted, createDeflateRaw({ level, chunkSize: pieceBytes }), async (packed: AsyncIterable<Buffer>) => {
		for await (const piece of packed) await put(piece)
	})
	const trailer = Buffer.alloc(8)
	trailer.writeUInt32LE(crc, 0)
	trailer.writeUInt32LE(length % 2 ** 32, 4)
	await put(trailer)
	await file.write(headOf(digest.digest('hex')), 0, headBytes, 0)
	await file.sync()
	return size
}

/** Throws `backup_damaged` unless the file is byte for byte what was written. Returns its size. */
export async function checkEnvelope(path: string, signal?: AbortSignal): Promise<number> {
	await using file = await openFile(path)
	const head = await readHead(file)
	const digest = createHash('sha256')
	let size = headBytes
	for await (const piece of piecesOf(file, { start: headBytes, signal })) {
		digest.update(piece)
		size += piece.length
	}
	if (!head.equals(headOf(digest.digest('hex')))) throw damaged('its bytes are not those that were written')
	return size
}

/** The content that `writeEnvelope` was given, chunk by chunk. Ending the iteration closes the file. */
export async function* openEnvelope(path: string, signal?: AbortSignal): AsyncGenerator<Buffer> {
	await using file = await openFile(path)
	await readHead(file)
	const packed = piecesOf(file, { start: 0, signal })
	const content = packed.pipe(createGunzip({ chunkSize: pieceBytes }))
	packed.on('error', (error) => content.destroy(error))
	try {
		for await (const piece of content) yield piece as Buffer
	} catch (error) {
		if (String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw damaged('it cannot be unpacked')
		throw error
	} finally {
		content.destroy()
		packed.destroy()
	}
}

/** Opening a pipe would block forever, on one of the few threads that all file access shares. */
async function openFile(path: string): Promise<FileHandle> {
	const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
	if ((await file.stat()).isFile()) return file
	await file.close()
	throw damaged('it is not a regular file')
}

async function readHead(file: FileHandle): Promise<Buffer> {
	const head = Buffer.alloc(headBytes)
	const { bytesRead } = await file.read(head, 0, headBytes, 0)
	if (bytesRead < headBytes || !head.subarray(0, -65).equals(headOf('').subarray(0, -1)))
		throw damaged('it does not have the header of a backup')
	return head
}

function headOf(digest: string): Buffer {
	return Buffer.concat([start, Buffer.from(`${label}${digest}\0`, 'latin1')])
}
