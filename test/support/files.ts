/** Small files of real formats, for tests of attachments. */

/** An image of one pixel. `mark`: appended bytes that decoders ignore, to get a different file. */
export function png(mark = ''): Buffer {
	const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
	return Buffer.concat([Buffer.from(pixel, 'base64'), Buffer.from(mark)])
}

export function pdf(): Buffer {
	return Buffer.from('%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n')
}

/** A second of silence. */
export function wav(): Buffer {
	const head = Buffer.alloc(44)
	head.write('RIFF', 0)
	head.writeUInt32LE(36 + 8000, 4)
	head.write('WAVEfmt ', 8)
	head.writeUInt32LE(16, 16)
	head.writeUInt16LE(1, 20)
	head.writeUInt16LE(1, 22)
	head.writeUInt32LE(8000, 24)
	head.writeUInt32LE(8000, 28)
	head.writeUInt16LE(1, 32)
	head.writeUInt16LE(8, 34)
	head.write('data', 36)
	head.writeUInt32LE(8000, 40)
	return Buffer.concat([head, Buffer.alloc(8000, 128)])
}

/** The beginning of a recording as chats send it; not decodable. */
export function ogg(mark = ''): Buffer {
	return Buffer.concat([Buffer.from('OggS\0\x02', 'latin1'), Buffer.alloc(20), Buffer.from(`OpusHead${mark}`)])
}

export function dataUrl(media_type: string, bytes: Buffer): string {
	return `data:${media_type};base64,${bytes.toString('base64')}`
}
