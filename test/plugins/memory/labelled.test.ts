/** The quality of the built-in search in seven languages, without a model or a network. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { AgentIndex } from '../../../plugins/memory/search/agent-index.ts'
import { HASHING } from '../../../plugins/memory/hashing.ts'

interface Labelled {
	memories: string[]
	/** Each with the indexes of the memories that answer it; one of them is enough. */
	questions: [question: string, answers: number[]][]
}

const DAY_MS = 24 * 3_600_000

function labelled(language: string): Labelled {
	return JSON.parse(readFileSync(new URL(`./labelled/${language}.json`, import.meta.url), 'utf8')) as Labelled
}

/** Memories stored a day apart, except for dialogues (`Name: …`), whose lines follow each other by a second. */
function indexOf(memories: readonly string[]): AgentIndex {
	const index = new AgentIndex('labelled', HASHING, 'none')
	let at = 0
	for (const [number, content] of memories.entries()) {
		at += /^\w+ ?: /u.test(content) ? 1_000 : DAY_MS
		index.add({ id: String(number), content, tags: [], at })
	}
	index.ready()
	return index
}

/** The shares of the questions whose answer is the first result, and among the first three. */
function measure(index: AgentIndex, questions: Labelled['questions']): { first: number; third: number } {
	const ranks = questions.map(([text, answers]) =>
		index.search({ text, limit: 10, tags: [] }).findIndex(({ id }) => answers.includes(Number(id))),
	)
	const share = (most: number): number => ranks.filter((rank) => rank >= 0 && rank < most).length / ranks.length
	return { first: share(1), third: share(3) }
}

const languages = ['en', 'de', 'it', 'es', 'fr', 'ja', 'zh']

for (const language of languages) {
	void t.test(`answers are among the first results: ${language}`, async (t) => {
		const { memories, questions } = labelled(language)
		const { first, third } = measure(indexOf(memories), questions)
		t.ok(first >= 0.8, `${(first * 100).toFixed(0)} % come first`)
		t.ok(third >= 0.9, `${(third * 100).toFixed(0)} % are among the first three`)
	})
}

void t.test('answers are among the first results of all languages together', async (t) => {
	const sets = languages.map(labelled)
	const memories = sets.flatMap((set) => set.memories)
	let from = 0
	const questions = sets.flatMap((set) => {
		const shifted = set.questions.map(([text, answers]): Labelled['questions'][0] => [
			text,
			answers.map((at) => at + from),
		])
		from += set.memories.length
		return shifted
	})
	const { first, third } = measure(indexOf(memories), questions)
	t.ok(first >= 0.85, `${(first * 100).toFixed(0)} % of ${questions.length} come first`)
	t.ok(third >= 0.95, `${(third * 100).toFixed(0)} % are among the first three`)
})

void t.test('a memory stored right after a match is found with it, one stored a day later is not', async (t) => {
	const index = new AgentIndex('near', HASHING, 'none')
	const rows = ['Which colour shall the boat have?', 'Green, as always.', 'Lunch is at one.']
	for (const [at, content] of rows.entries())
		index.add({ id: String(at), content, tags: [], at: at === 2 ? DAY_MS : at })
	index.ready()
	const found = index.search({ text: 'colour of the boat', limit: 10, tags: [] }).map(({ id }) => id)
	t.strictSame(found, ['0', '1'])
})

void t.test('a removed memory is no longer found, an added one is', async (t) => {
	const index = indexOf(['The boat is green.', 'The house is red.'])
	index.remove('0')
	t.strictSame(index.search({ text: 'green boat', limit: 10, tags: [] }), [])
	index.add({ id: '2', content: 'The boat is blue now.', tags: [], at: 10 * DAY_MS })
	t.match(index.search({ text: 'boat', limit: 10, tags: [] }), [{ id: '2' }])
})
