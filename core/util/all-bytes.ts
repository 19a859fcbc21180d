/** Reads a whole stream. Throws the error from `tooLarge` if it has more than `limit` bytes, without reading the rest. */
export async function allBytes(
	stream: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>,
	limit: number,
	tooLarge: () => Error,
): Promise<Buffer> {
	const parts: Uint8Array[] = []
	let size = 0
	for await (const part of stream) {
		const bytes = typeof part === 'string' ? Buffer.from(part) : part
		size += bytes.length
		if (size > limit) throw tooLarge()
		parts.push(bytes)
	}
	return Buffer.concat(parts)
}
