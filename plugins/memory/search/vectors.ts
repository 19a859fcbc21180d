/**
 * The vectors of one agent, one byte per dimension: small enough for an exact scan, which is used while there are few or the
 * graph is incomplete.
 */
import { TopScores } from './top-scores.ts'
import type { Scored } from './top-scores.ts'
import { dotWith } from './dot.ts'
import { grown } from './grown.ts'

const START = 256
const SAMPLE = 64

export class Vectors {
	readonly dimensions: number
	#codes: Int8Array
	/** The scale of a code; 0 if there is no vector. */
	#scales = new Float32Array(START)
	#count = 0
	/** Above the highest ordinal that has had a vector. */
	#end = 0
	/** The mean of the sample; absent if a vector has changed since. */
	#mean: Float32Array | undefined

	constructor(dimensions: number) {
		this.dimensions = dimensions
		this.#codes = new Int8Array(START * dimensions)
	}

	/** The number of vectors. */
	get count(): number {
		return this.#count
	}

	get bytes(): number {
		return this.#codes.length + this.#scales.length * 4
	}

	/** `vector`: of length 1. All zeros mean no vector. */
	set(ordinal: number, vector: Float32Array): void {
		this.#scales = grown(this.#scales, ordinal + 1)
		this.#codes = grown(this.#codes, (ordinal + 1) * this.dimensions)
		this.#end = Math.max(this.#end, ordinal + 1)
		this.#mean = undefined
		const had = this.has(ordinal)
		const codes = this.#codes.subarray(ordinal * this.dimensions, (ordinal + 1) * this.dimensions)
		this.#scales[ordinal] = encode(vector, codes)
		this.#count += Number(this.has(ordinal)) - Number(had)
	}

	has(ordinal: number): boolean {
		return (this.#scales[ordinal] ?? 0) !== 0
	}

	remove(ordinal: number): void {
		if (!this.has(ordinal)) return
		this.#mean = undefined
		this.#scales[ordinal] = 0
		this.#count--
	}

	/** A view of the stored codes, valid until the next `set`. */
	codes(ordinal: number): Int8Array {
		return this.#codes.subarray(ordinal * this.dimensions, (ordinal + 1) * this.dimensions)
	}

	/** Cosines of a query with the vectors of ordinals: -1 to 1; 0 if there is no vector. Valid until the next change. */
	cosinesWith(query: Float32Array): (ordinal: number) => number {
		const [codes, scales, dimensions] = [this.#codes, this.#scales, this.dimensions]
		const dot = dotWith(query)
		return (ordinal) => dot(codes, ordinal * dimensions) * (scales[ordinal] ?? 0)
	}

	/** The mean cosine of all vectors with a query, from an even sample of at most 64; 0 if there are none. */
	meanCosine(query: Float32Array): number {
		const mean = (this.#mean ??= this.#meanOfSample())
		let sum = 0
		for (let at = 0; at < this.dimensions; at++) sum += (query[at] as number) * (mean[at] as number)
		return sum
	}

	/** The mean of cosines is the cosine of the mean. */
	#meanOfSample(): Float32Array {
		const mean = new Float32Array(this.dimensions)
		const step = Math.max(1, this.#end / SAMPLE)
		let count = 0
		for (let place = 0; place < this.#end; place += step) {
			const ordinal = Math.floor(place)
			if (!this.has(ordinal)) continue
			count++
			const scale = this.#scales[ordinal] as number
			for (const [at, code] of this.codes(ordinal).entries()) mean[at] = (mean[at] as number) + code * scale
		}
		return count === 0 ? mean : mean.map((value) => value / count)
	}

	/** The `limit` nearest of `ordinals` (default: all) whose cosine is at least `floor`, in no order. `cosine`: with the query. */
	scan(
		cosine: (ordinal: number) => number,
		limit: number,
		floor: number,
		ordinals?: Iterable<number>,
	): readonly Scored[] {
		const best = new TopScores(limit)
		const compare = (ordinal: number): void => {
			if (!this.has(ordinal)) return
			const score = cosine(ordinal)
			if (score >= floor) best.offer(ordinal, score)
		}
		if (ordinals) for (const ordinal of ordinals) compare(ordinal)
		else for (let ordinal = 0; ordinal < this.#scales.length; ordinal++) compare(ordinal)
		return best.kept()
	}
}

/** Quantizes a vector into `codes`, and returns their scale; 0 for a vector of zeros. */
export function encode(vector: Float32Array, codes: Int8Array): number {
	let most = 0
	for (let at = 0; at < vector.length; at++) most = Math.max(most, Math.abs(vector[at] as number))
	if (!(most > 0)) return 0 // NaN too
	const factor = 127 / most
	for (let at = 0; at < codes.length; at++) codes[at] = Math.round((vector[at] as number) * factor)
	return most / 127
}
