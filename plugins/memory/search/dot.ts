/** The dot product of a float vector and a byte vector: nearly all of the work of comparing many vectors with a query. */

/** Above this share of nonzero values, looking up their offsets costs more than skipping zeros saves. */
const SPARSE = 0.5

/**
 * Returns the dot product of `vector` and the codes that start at `from`. Skips the zeros of sparse vectors, such as those of
 * the built-in embedder.
 */
export function dotWith(vector: Float32Array): (codes: Int8Array, from: number) => number {
	let count = 0
	for (let at = 0; at < vector.length; at++) count += Number(vector[at] !== 0)
	if (count > vector.length * SPARSE) return (codes, from) => dense(vector, codes, from)
	// Padded with zeros to a multiple of four.
	const values = new Float32Array(Math.ceil(count / 4) * 4)
	const offsets = new Int32Array(values.length)
	count = 0
	for (let at = 0; at < vector.length; at++) {
		if (vector[at] === 0) continue
		values[count] = vector[at] as number
		offsets[count++] = at
	}
	return (codes, from) => sparse(values, offsets, codes, from)
}

/** Both use four independent sums, which the processor can add in parallel. */
function dense(vector: Float32Array, codes: Int8Array, from: number): number {
	const even = vector.length - (vector.length % 4)
	let [a, b, c, d] = [0, 0, 0, 0]
	for (let at = 0; at < even; at += 4) {
		a += (vector[at] as number) * (codes[from + at] as number)
		b += (vector[at + 1] as number) * (codes[from + at + 1] as number)
		c += (vector[at + 2] as number) * (codes[from + at + 2] as number)
		d += (vector[at + 3] as number) * (codes[from + at + 3] as number)
	}
	for (let at = even; at < vector.length; at++) a += (vector[at] as number) * (codes[from + at] as number)
	return a + b + c + d
}

function sparse(values: Float32Array, offsets: Int32Array, codes: Int8Array, from: number): number {
	let [a, b, c, d] = [0, 0, 0, 0]
	for (let at = 0; at < values.length; at += 4) {
		a += (values[at] as number) * (codes[from + (offsets[at] as number)] as number)
		b += (values[at + 1] as number) * (codes[from + (offsets[at + 1] as number)] as number)
		c += (values[at + 2] as number) * (codes[from + (offsets[at + 2] as number)] as number)
		d += (values[at + 3] as number) * (codes[from + (offsets[at + 3] as number)] as number)
	}
	return a + b + c + d
}
