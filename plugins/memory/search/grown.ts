type Numbers = Float32Array | Float64Array | Int8Array | Int32Array | Uint8Array | Uint32Array

/** The same array if it has room for `length` values, otherwise a copy with half as much room again. */
export function grown<T extends Numbers>(array: T, length: number): T {
	if (length <= array.length) return array
	const Kind = array.constructor as new (length: number) => T
	const larger = new Kind(Math.max(length, Math.ceil(array.length * 1.5)))
	larger.set(array as never)
	return larger
}
