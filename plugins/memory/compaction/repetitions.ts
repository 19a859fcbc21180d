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

export interface Said {
	id: string
	/** One for each different sentence. */
	sentences: ReadonlySet<string>
}

const articles = new Set(
	'a an the der die das ein eine le la les un une el los las il lo gli uno una o os as um uma de het een en ett'.split(
		' ',
	),
)
const ends = /[.!?…。！？\n]+/u
/** A sentence in more memories than this does not help to find where else a memory is contained. */
const MOST_HOLDERS = 1_000

export function saidIn(id: string, content: string): Said {
	const sentences = new Set<string>()
	for (const sentence of content.split(ends)) {
		const words = wordsOf(sentence)
		const telling = words.filter((word) => !articles.has(word))
		const text = (telling.length > 0 ? telling : words).join(' ')
		if (text !== '') sentences.add(hash('sha256', text, 'base64url').slice(0, 16))
	}
	return { id, sentences }
}

/**
 * Groups of memories that their last one contains completely. `all`: oldest first; of two identical ones the
 * newer one stays. At most `most` in a group; none is in two.
 */
export function repetitions(all: readonly Said[], most: number): string[][] {
	const holders = new Map<string, number[]>()
	for (const [at, { sentences }] of all.entries()) {
		for (const sentence of sentences) {
			const list = holders.get(sentence)
			if (!list) holders.set(sentence, [at])
			else if (list.length < MOST_HOLDERS) list.push(at)
		}
	}
	/** The memory that contains all of it, and stays. */
	const keeperOf = (at: number): number => {
		const { sentences } = all[at] as Said
		let fewest: number[] | undefined
		for (const sentence of sentences) {
			const list = holders.get(sentence) ?? []
			if (!fewest || list.length < fewest.length) fewest = list
		}
		let keeper = at
		for (const other of fewest ?? []) {
			const size = (all[other] as Said).sentences.size
			const best = (all[keeper] as Said).sentences.size
			const isMore = size > best || (size === best && other > keeper)
			if (isMore && sentences.isSubsetOf((all[other] as Said).sentences)) keeper = other
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
		.map(([keeper, members]) => [...members, keeper].map((at) => (all[at] as Said).id))
}
