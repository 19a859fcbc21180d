/**
 * The share of the memories that answer a question among the first ten results, with and without the sentence encoder, compared with
 * BM25 over each memory with its neighbours. The sets differ in style; no question about the chat or the notes was used to tune the
 * search. Each question searches a memory with all sets.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { HASHING } from '../../plugins/memory/hashing.ts'
import { encoderIn } from '../../plugins/memory/local/encoder.ts'
import { LOCAL } from '../../plugins/memory/local/packages.ts'
import { AgentIndex } from '../../plugins/memory/search/agent-index.ts'
import { termsOf } from '../../plugins/memory/words.ts'
import type { Figure } from './table.ts'

interface Labelled {
	memories: string[]
	questions: [question: string, answers: number[]][]
}

interface LabelledSet {
	about: string
	/** Seconds between its memories. */
	gap: number
	/** The index of its first memory among those of all sets. */
	from: number
	labelled: Labelled
}

type Search = (question: string) => Promise<number[]> | number[]

const RESULTS = 10
const DAY_S = 86_400
const languages = ['de', 'es', 'fr', 'it', 'ja', 'zh']

export async function recall(): Promise<Figure[]> {
	const sets = readSets()
	const memories = sets.flatMap(({ labelled, gap }) => labelled.memories.map((content) => ({ content, gap })))
	await using encoder = encoderIn(fileURLToPath(new URL('../../', import.meta.url)))
	const { signal } = new AbortController()
	const vectors = await encoder.embed(
		memories.map(({ content }) => content),
		signal,
	)
	const [words, local] = [new AgentIndex('words', HASHING, 'none'), new AgentIndex('local', LOCAL, 'none')]
	const times: number[] = []
	for (const [number, { content, gap }] of memories.entries()) {
		times.push((times.at(-1) ?? 0) + gap * 1_000)
		const row = { id: String(number), content, tags: [], at: times[number] as number }
		words.add(row)
		local.add({ ...row, vector: vectors[number] as Float32Array })
	}
	for (const index of [words, local]) index.ready()
	const options = { limit: RESULTS, tags: [] }
	const byWords: Search = (text) => words.search({ text, ...options }).map(({ id }) => Number(id))
	const byMeaning: Search = async (text) => {
		const [vector] = await encoder.embed([text], signal)
		return local.search({ text, ...options, ...(vector && { vector }) }).map(({ id }) => Number(id))
	}
	const plain = plainSearch(
		memories.map(({ content }) => content),
		times,
	)
	const figures: Figure[] = []
	for (const set of sets) {
		const bare = await recallOf(set, plain)
		for (const [how, search] of [
			['', byWords],
			[', local encoder', byMeaning],
		] as const) {
			const metric = `recall@${RESULTS}, ${set.about}${how}`
			figures.push({ metric, unit: 'share', ours: await recallOf(set, search), bare, goal: { of: 'ratio', least: 1 } })
		}
	}
	return figures
}

function readSets(): LabelledSet[] {
	const read = (path: string): Labelled => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as Labelled
	const sets = [
		{ about: 'chat lines', gap: 60, labelled: read('./recall/chat.json') },
		{ about: 'long notes', gap: DAY_S, labelled: read('./recall/notes.json') },
		...languages.map((code) => ({
			about: `facts in ${code}`,
			gap: DAY_S,
			labelled: read(`../plugins/memory/labelled/${code}.json`),
		})),
	]
	let from = 0
	return sets.map((set) => {
		const placed = { ...set, from }
		from += set.labelled.memories.length
		return placed
	})
}

async function recallOf({ labelled, from }: LabelledSet, search: Search): Promise<number> {
	let sum = 0
	for (const [question, answers] of labelled.questions) {
		const found = await search(question)
		sum += answers.filter((answer) => found.includes(answer + from)).length / answers.length
	}
	return sum / labelled.questions.length
}

/** BM25 with its usual constants (k1 1.2, b 0.75). A document is a memory with the previous and the next one, if within an hour. */
function plainSearch(contents: readonly string[], times: readonly number[]): Search {
	const own = contents.map((content) => termsOf(content).terms)
	const isNear = (a: number, b: number): boolean => Math.abs((times[a] ?? Infinity) - (times[b] ?? 0)) <= 3_600_000
	const documents = own.map((terms, at) => [
		...(isNear(at - 1, at) ? (own[at - 1] ?? []) : []),
		...terms,
		...(isNear(at + 1, at) ? (own[at + 1] ?? []) : []),
	])
	const average = documents.reduce((sum, { length }) => sum + length, 0) / documents.length
	const holders = new Map<string, number>()
	for (const terms of documents) for (const term of new Set(terms)) holders.set(term, (holders.get(term) ?? 0) + 1)
	return (question) => {
		const asked = new Set(termsOf(question).terms)
		const scores = documents.map((terms) => {
			let score = 0
			for (const term of asked) {
				const count = terms.filter((one) => one === term).length
				const having = holders.get(term) ?? 0
				const idf = Math.log(1 + (documents.length - having + 0.5) / (having + 0.5))
				score += (idf * count * 2.2) / (count + 1.2 * (0.25 + (0.75 * terms.length) / average))
			}
			return score
		})
		const order = [...scores.keys()].filter((at) => (scores[at] ?? 0) > 0)
		return order.toSorted((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, RESULTS)
	}
}
