/**
 * The built-in embedder: no model, no network, always the same vector for the same terms. Each term and each trigram
 * of it map to one of the dimensions, with a sign. It finds related wording and misspelt words, but no meaning.
 */

/** Changes whenever the vectors change: stored indexes with another id are rebuilt. */
export const HASHING = 'hashing-2'
export const HASHING_DIMENSIONS = 256

/** A unit vector, or all zeros if there are no terms. `weigh` returns the weight of a term. */
export function hashTerms(terms: readonly string[], weigh: (term: string) => number = () => 1): Float32Array {
	const vector = new Float32Array(HASHING_DIMENSIONS)
	const counts = new Map<string, number>()
	for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
	for (const [term, count] of counts) addTerm(vector, term, weigh(term) * (1 + Math.log(count)))
	return normalise(vector)
}

/** In place. */
export function normalise(vector: Float32Array): Float32Array {
	let sum = 0
	for (let at = 0; at < vector.length; at++) sum += (vector[at] as number) * (vector[at] as number)
	if (sum === 0) return vector
	const factor = 1 / Math.sqrt(sum)
	for (let at = 0; at < vector.length; at++) vector[at] = (vector[at] as number) * factor
	return vector
}

const SEED = 0x811c9dc5
/** Markers around a term for the trigrams of its beginning and end. */
const EDGE = 0x5e
/** Distinguishes a trigram from a term of three letters. */
const LETTERS = 0x9e3779b9

function addTerm(vector: Float32Array, term: string, weight: number): void {
	let hash = SEED
	for (let at = 0; at < term.length; at++) hash = step(hash, term.charCodeAt(at))
	addFeature(vector, finish(hash), weight)
	const count = term.length
	if (count < 3) return
	const share = weight / Math.sqrt(count)
	for (let at = -1; at < count - 1; at++) {
		const before = at < 0 ? EDGE : term.charCodeAt(at)
		const after = at + 2 >= count ? EDGE : term.charCodeAt(at + 2)
		const three = step(step(step(LETTERS, before), term.charCodeAt(at + 1)), after)
		addFeature(vector, finish(three), share)
	}
}

function addFeature(vector: Float32Array, hash: number, weight: number): void {
	const at = hash % HASHING_DIMENSIONS
	vector[at] = (vector[at] as number) + (hash >>> 31 === 1 ? weight : -weight)
}

/** FNV-1a, finished as murmur3 does. */
function step(hash: number, code: number): number {
	return Math.imul(hash ^ code, 0x01000193)
}

function finish(hash: number): number {
	let mixed = hash ^ (hash >>> 16)
	mixed = Math.imul(mixed, 0x85ebca6b)
	mixed ^= mixed >>> 13
	mixed = Math.imul(mixed, 0xc2b2ae35)
	return (mixed ^ (mixed >>> 16)) >>> 0
}
