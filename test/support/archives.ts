/** Builds archives byte by byte, including invalid ones that no tool creates. */
import { crc32, deflateRawSync, gzipSync } from 'node:zlib'

export interface ArchiveFile {
	name: string
	content?: string | Uint8Array
	/** The type of a tar entry: `0` file, `1` hard link, `2` symbolic link, `3` device, `5` folder, `6` pipe. In a zip it sets the mode. */
	type?: string
	/** The target of a link. */
	target?: string
	/** A false size for the header. */
	size?: number
	/** A false checksum for the header; zip only. */
	crc?: number
	encrypted?: boolean
}

const modes: Record<string, number> = { 0: 0o100644, 2: 0o120777, 3: 0o020644, 5: 0o040755, 6: 0o010644 }

export function zipOf(files: readonly ArchiveFile[]): Buffer {
	const bodies: Buffer[] = []
	const directory: Buffer[] = []
	let at = 0
	for (const { name, content = '', type = '0', target, size, crc, encrypted = false } of files) {
		const bytes = Buffer.from(target ?? content)
		const packed = deflateRawSync(bytes)
		const names = Buffer.from(name)
		const head = Buffer.alloc(26)
		head.writeUInt16LE(20, 0)
		head.writeUInt16LE(0x800 | (encrypted ? 1 : 0), 2)
		head.writeUInt16LE(8, 4)
		head.writeUInt32LE(crc ?? crc32(bytes), 10)
		head.writeUInt32LE(packed.length, 14)
		head.writeUInt32LE(size ?? bytes.length, 18)
		head.writeUInt16LE(names.length, 22)
		const local = Buffer.concat([Buffer.from('PK\x03\x04'), head, names, packed])
		const end = Buffer.alloc(14)
		end.writeUInt32LE(((modes[type] ?? 0) << 16) >>> 0, 6)
		end.writeUInt32LE(at, 10)
		// Created by Unix, so the attributes contain a Unix mode.
		directory.push(Buffer.from('PK\x01\x02\x14\x03', 'latin1'), head, end, names)
		bodies.push(local)
		at += local.length
	}
	const listing = Buffer.concat(directory)
	const tail = Buffer.alloc(18)
	tail.writeUInt16LE(files.length, 4)
	tail.writeUInt16LE(files.length, 6)
	tail.writeUInt32LE(listing.length, 8)
	tail.writeUInt32LE(at, 12)
	return Buffer.concat([...bodies, listing, Buffer.from('PK\x05\x06'), tail])
}

export function tarOf(files: readonly ArchiveFile[]): Buffer {
	const blocks: Buffer[] = []
	for (const { name, content = '', type = '0', target = '', size } of files) {
		const bytes = Buffer.from(content)
		const names = Buffer.from(name)
		// As in GNU tar, a long name is a separate entry before the entry itself.
		if (names.length > 100) blocks.push(...entry('././@LongLink', 'L', '', names, names.length))
		blocks.push(...entry(name, type, target, bytes, size ?? bytes.length))
	}
	return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

export function tarGzOf(files: readonly ArchiveFile[]): Buffer {
	return gzipSync(tarOf(files))
}

function entry(name: string, type: string, target: string, bytes: Buffer, size: number): Buffer[] {
	const header = Buffer.alloc(512)
	Buffer.from(name).copy(header, 0, 0, 100)
	header.write('0000644\0', 100)
	header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
	header.write('00000000000\0', 136)
	header.write('        ', 148)
	header.write(type, 156)
	header.write(target, 157)
	header.write('ustar\x0000', 257)
	const sum = header.reduce((total, byte) => total + byte, 0)
	header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
	return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]
}
