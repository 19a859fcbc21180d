/**
 * Finds repetitions: a memory whose every sentence is also in another one. Only spelling is compared (case, punctuation,
 * articles), so no sentence gets lost, and "likes tea" never matches "does not like tea".
 *
 * The built-in embedder is not used: no threshold separates repetition from contradiction. "Ada manages Bob" and
 * "Bob manages Ada" are identical to it (1.0), as is "before" to "after"; "is paid within 30 days" and "we pay within 30
 * days" are not (0.81).
 */
import { hash } from 'node:crypto'
import { wordsOf } from '../words.ts'

export interface Sentences {
	id: string
	/** A hash of each distinct sentence. */
	sentences: ReadonlySet<string>
}

const articles = new Set(
	'a an the der die das ein eine le la les un une el los las il lo gli uno una o os as um uma de het een en ett'.split(
		' ',
	),
)
const ends = /[.!?…。！？\n]+/u
/** Memories recorded for one sentence. A more common sentence does not help to find the memory that contains another one. */
const MAX_HOLDERS = 1_000

export function sentencesOf(id: string, content: string): Sentences {
	const sentences = new Set<string>()
	for (const sentence of content.split(ends)) {
		const words = wordsOf(sentence)
		const significant = words.filter((word) => !articles.has(word))
		const text = (significant.length > 0 ? significant : words).join(' ')
		if (text !== '') sentences.add(hash('sha256', text, 'base64url').slice(0, 16))
	}
	return { id, sentences }
}

/**
 * Groups of memories that are all contained in the last one of their group, at most `most` in each. A memory is in one group
 * at most. `all`: oldest first; of two identical memories the newer one is kept.
 */
export function repetitions(all: readonly Sentences[], most: number): string[][] {
	const holders = new Map<string, number[]>()
	for (const [at, { sentences }] of all.entries()) {
		for (const sentence of sentences) {
			const list = holders.get(sentence)
			if (!list) holders.set(sentence, [at])
			else if (list.length < MAX_HOLDERS) list.push(at)
		}
	}
	/** The memory that contains this one and is kept. */
	const keeperOf = (at: number): number => {
		const { sentences } = all[at] as Sentences
		let fewest: number[] | undefined
		for (const sentence of sentences) {
			const list = holders.get(sentence) ?? []
			if (!fewest || list.length < fewest.length) fewest = list
		}
		let keeper = at
		for (const other of fewest ?? []) {
			const size = (all[other] as Sentences).sentences.size
			const best = (all[keeper] as Sentences).sentences.size
			const isBetter = size > best || (size === best && other > keeper)
			if (isBetter && sentences.isSubsetOf((all[other] as Sentences).sentences)) keeper = other
		}
		return keeper
	}
	const groups = new Map<number, number[]>()
	for (const [at, { sentences }] of all.entries()) {
		const keeper = sentences.size === 0 ? at : keeperOf(at)
		if (keeper === at) continue
		const group = groups.get(keeper)
		if (!group) groups.set(keeper, [at])
		else if (group.length < most - 1) group.push(at)
	}
	return [...groups]
		.filter(([keeper]) => !groups.values().some((members) => members.includes(keeper)))
		.map(([keeper, members]) => [...members, keeper].map((at) => (all[at] as Sentences).id))
}
