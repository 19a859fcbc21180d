/** How well the built-in search finds, in seven languages, with no model and no network. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { AgentIndex } from '../../../plugins/memory/search/agent-index.ts'
import { HASHING } from '../../../plugins/memory/hashing.ts'

interface Labelled {
	memories: string[]
	/** Each with the places of the memories that answer it; one of them is enough. */
	questions: [question: string, answers: number[]][]
}

const DAY_MS = 24 * 3_600_000

function labelled(language: string): Labelled {
	return JSON.parse(readFileSync(new URL(`./labelled/${language}.json`, import.meta.url), 'utf8')) as Labelled
}

/** Memories stored a day apart, but for talks (`Name: …`), whose turns follow each other. */
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

/** Shares of the questions whose answer comes first, and among the first three. */
function measure(index: AgentIndex, questions: Labelled['questions']): { first: number; third: number } {
	const ranks = questions.map(([text, answers]) =>
		index.search({ text, limit: 10, tags: [] }).findIndex(({ id }) => answers.includes(Number(id))),
	)
	const share = (most: number): number => ranks.filter((rank) => rank >= 0 && rank < most).length / ranks.length
	return { first: share(1), third: share(3) }
}

const languages = ['en', 'de', 'it', 'es', 'fr', 'ja', 'zh']

for (const language of languages) {
	void t.test(`finds what was asked for: ${language}`, async (t) => {
		const { memories, questions } = labelled(language)
		const { first, third } = measure(indexOf(memories), questions)
		t.ok(first >= 0.8, `${(first * 100).toFixed(0)} % come first`)
		t.ok(third >= 0.9, `${(third * 100).toFixed(0)} % are among the first three`)
	})
}

void t.test('finds it in a memory of all languages together, too', async (t) => {
	const sets = languages.map(labelled)
	const memories = sets.flatMap((set) => set.memories)
	let from = 0
	const questions = sets.flatMap((set) => {
		const moved = set.questions.map(([text, answers]): Labelled['questions'][0] => [
			text,
			answers.map((at) => at + from),
		])
		from += set.memories.length
		return moved
	})
	const { first, third } = measure(indexOf(memories), questions)
	t.ok(first >= 0.85, `${(first * 100).toFixed(0)} % of ${questions.length} come first`)
	t.ok(third >= 0.95, `${(third * 100).toFixed(0)} % are among the first three`)
})

void t.test('what was stored right beside a match counts, what was stored a day later does not', async (t) => {
	const index = new AgentIndex('near', HASHING, 'none')
	const rows = ['Which colour shall the boat have?', 'Green, as always.', 'Lunch is at one.']
	for (const [at, content] of rows.entries())
		index.add({ id: String(at), content, tags: [], at: at === 2 ? DAY_MS : at })
	index.ready()
	const found = index.search({ text: 'colour of the boat', limit: 10, tags: [] }).map(({ id }) => id)
	t.strictSame(found, ['0', '1'])
})

void t.test('a removed memory is found no more, and one that is added is', async (t) => {
	const index = indexOf(['The boat is green.', 'The house is red.'])
	index.remove('0')
	t.strictSame(index.search({ text: 'green boat', limit: 10, tags: [] }), [])
	index.add({ id: '2', content: 'The boat is blue now.', tags: [], at: 10 * DAY_MS })
	t.match(index.search({ text: 'boat', limit: 10, tags: [] }), [{ id: '2' }])
})
