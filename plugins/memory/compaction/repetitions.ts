/**
 * What is said twice: a memory each of whose sentences another one has too. Only spelling is compared (case, punctuation,
 * articles), so no sentence gets lost, and "likes tea" is never taken for "does not like tea".
 */
import { createHash } from 'node:crypto'
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
/** A sentence that more memories have tells nothing of where else a memory may stand. */
const MOST_HOLDERS = 1_000

export function saidIn(id: string, content: string): Said {
	const sentences = new Set<string>()
	for (const sentence of content.split(ends)) {
		const words = wordsOf(sentence)
		const telling = words.filter((word) => !articles.has(word))
		const text = (telling.length > 0 ? telling : words).join(' ')
		if (text !== '') sentences.add(createHash('sha256').update(text).digest('base64url').slice(0, 16))
	}
	return { id, sentences }
}

/**
 * Groups of memories that one of them says alone, which comes last. `all`: oldest first; of two that say the same the
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
	/** The memory that says all of it, and stays itself. */
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
		.filter(([keeper]) => !isMember(groups, keeper))
		.map(([keeper, members]) => [...members, keeper].map((at) => (all[at] as Said).id))
}

function isMember(groups: ReadonlyMap<number, number[]>, at: number): boolean {
	for (const members of groups.values()) if (members.includes(at)) return true
	return false
}
