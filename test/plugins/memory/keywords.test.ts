/** The results of the keyword index, and of a search that uses it. */
import t from 'tap'
import { HASHING } from '../../../plugins/memory/hashing.ts'
import { AgentIndex } from '../../../plugins/memory/search/agent-index.ts'
import { TopScores } from '../../../plugins/memory/search/top-scores.ts'
import type { Scored } from '../../../plugins/memory/search/top-scores.ts'
import { KeywordIndex } from '../../../plugins/memory/search/keywords.ts'
import { queryOf, termsOf } from '../../../plugins/memory/words.ts'
import { rowsOf, sentences } from './thread.ts'

const MEMORIES = 3_000
const LIMIT = 10
const contents = sentences(MEMORIES + 100)
const questions = contents.splice(MEMORIES).map((text) => text.split(' ').slice(0, 9).join(' '))

void t.test('the highest of many scores are kept; of equal scores, the older memory', async (t) => {
	for (const limit of [1, 2, 7, 100]) {
		const offers: Scored[] = Array.from({ length: 1_000 }, (_, ordinal) => ({ ordinal, score: (ordinal * 619) % 97 }))
		const best = new TopScores(limit)
		for (const { ordinal, score } of offers) best.offer(ordinal, score)
		const sorted = offers.toSorted((a, b) => b.score - a.score || a.ordinal - b.ordinal)
		t.strictSame(best.sorted(), sorted.slice(0, limit), `the ${limit} highest of 1,000`)
	}
	const few = new TopScores(10)
	few.offer(3, 1)
	few.offer(4, 2)
	t.equal(few.least, undefined)
	t.strictSame(few.sorted(), [
		{ ordinal: 4, score: 2 },
		{ ordinal: 3, score: 1 },
	])
})

void t.test('a search by keywords returns the needed results and those within the margin', async (t) => {
	const index = new KeywordIndex()
	for (const [at, content] of contents.entries()) index.add(termsOf(content).terms, at)
	for (let ordinal = 0; ordinal < MEMORIES; ordinal += 7) index.remove(ordinal)
	const isEven = (ordinal: number): boolean => ordinal % 2 === 0
	for (const question of questions) {
		const terms = index.find(queryOf(question, [termsOf(question).language]))
		for (const allowed of [undefined, isEven]) {
			const search = (margin: number, most: number): Scored[] => {
				const { found, best, needed } = index.search(terms, { limit: LIMIT, margin, most, allowed })
				const sorted = found.toSorted((a, b) => b.score - a.score || a.ordinal - b.ordinal)
				t.strictSame([best, needed], [sorted[0]?.score, sorted[LIMIT - 1]?.score])
				return sorted
			}
			const all = search(1, MEMORIES)
			t.ok(all.length > LIMIT && all.every(({ ordinal }) => ordinal % 7 !== 0 && (allowed?.(ordinal) ?? true)))
			const least = (all[LIMIT - 1] as Scored).score - 0.1 * (all[0] as Scored).score
			const within = all.filter(({ score }) => score >= least)
			t.strictSame(search(0.1, MEMORIES), within)
			const most = LIMIT + 2
			t.strictSame(search(0.1, most), within.slice(0, most))
		}
	}
})

void t.test('the first results do not depend on the limit', async (t) => {
	const index = new AgentIndex('agent', HASHING, 'none')
	const words = contents.join(' ').split(' ')
	// The most similar memories are often short ones, which have few words of the question.
	const texts = Array.from({ length: 2_000 }, (_, at) => {
		const from = (at * 619) % words.length
		return words.slice(from, from + (at % 3 === 0 ? 1 + (at % 2) : 5 + (at % 60))).join(' ')
	})
	for (const row of rowsOf(texts)) index.add(row)
	index.ready()
	for (const question of questions) {
		const text = question.split(' ').slice(0, 4).join(' ')
		const search = (limit: number): string[] => index.search({ text, limit, tags: [] }).map(({ id }) => id)
		const many = search(40)
		for (const limit of [1, 3, LIMIT]) t.strictSame(search(limit), many.slice(0, limit))
	}
})
