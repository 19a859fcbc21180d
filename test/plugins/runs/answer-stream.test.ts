/** What a client is told while an answer is made, for any way in which model calls break off and begin anew. */
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { AnswerStream } from '../../../plugins/runs/answer-stream.ts'
import type { AnswerEnd } from '../../../plugins/runs/answer-stream.ts'

interface Told {
	answer: AnswerStream
	pieces: string[]
	ends: (AnswerEnd | undefined)[]
	hear(event_type: string, payload?: Record<string, unknown>): void
}

function listen(): Told {
	const pieces: string[] = []
	const ends: (AnswerEnd | undefined)[] = []
	const answer = new AnswerStream((text) => pieces.push(text))
	const hear = (event_type: string, payload: Record<string, unknown> = {}): void =>
		void ends.push(answer.handle({ event_type, payload }))
	return { answer, pieces, ends, hear }
}

const usage = { input_tokens: 2, output_tokens: 1 }

/** A model call: what its attempts that broke off had said, and what it says in the end. */
interface Call {
	attempts: string[]
	words: string
	fallback: boolean
}

function play({ hear }: Told, { attempts, words, fallback }: Call): void {
	hear('model.request')
	for (const attempt of attempts) {
		for (const piece of attempt.match(/[^]{1,3}/g) ?? []) hear('model.stream', { content: piece })
		hear(fallback ? 'model.fallback' : 'model.retry')
		if (fallback) hear('model.request')
	}
	for (const piece of words.match(/[^]{1,2}/g) ?? []) hear('model.stream', { content: piece })
	hear('model.response', { model: 'm', usage })
	if (words !== '') hear('message.assistant', { content: words })
}

const letters = ['a', 'b', '\n', '😀']
const few = fc.string({ unit: fc.constantFrom(...letters), maxLength: 6 })
const call = fc.record({ attempts: fc.array(few, { maxLength: 3 }), words: few, fallback: fc.boolean() })
/** Each attempt begins like the words in the end, so that what was told stays true. */
const steadyCall = fc
	.record({ words: few, cuts: fc.array(fc.nat({ max: 6 }), { maxLength: 3 }), fallback: fc.boolean() })
	.map(({ words, cuts, fallback }) => {
		const attempts = cuts.map((cut) => Array.from(words).slice(0, cut).join(''))
		return { attempts, words, fallback }
	})
const runOf = (one: fc.Arbitrary<Call>) => fc.array(one, { minLength: 1, maxLength: 4 })

/** Plays a whole run, and compares what it was with what was told. */
function isWhole(t: Test, calls: Call[]): boolean {
	const told = listen()
	for (const one of calls) play(told, one)
	told.hear('run.completed')
	const { answer, pieces, ends } = told
	const spoken = calls.map(({ words }) => words).filter((words) => words !== '')
	t.equal(answer.text, spoken.join('\n\n'))
	t.strictSame(ends.at(-1), { status: 'completed' })
	if (answer.isWhole) t.equal(pieces.join(''), answer.text)
	return answer.isWhole
}

void t.test('the pieces are the text, or it says that they are not', (t) => {
	fc.assert(
		fc.property(runOf(call), runOf(steadyCall), ([first, ...rest], steady) => {
			if (!first) throw new Error('a run has at least one call')
			isWhole(t, [first, ...rest])
			t.ok(isWhole(t, steady))
			// None of the words has this letter.
			t.notOk(isWhole(t, [{ ...first, attempts: [...first.attempts, 'c'] }, ...rest]))
		}),
		{ numRuns: 200 },
	)
	t.end()
})

void t.test('pieces that never came are made up for by the whole words', (t) => {
	const { hear, pieces, answer } = listen()
	hear('model.request')
	hear('model.stream', { content: 'It is ' })
	hear('model.response', { model: 'm', usage })
	hear('security.redacted', { name: 'X' })
	hear('message.assistant', { content: 'It is blue.' })
	hear('run.completed')
	t.strictSame(pieces, ['It is ', 'blue.'])
	t.ok(answer.isWhole)
	t.strictSame(answer.usage, usage)
	t.end()
})

void t.test('a question is the end of the text', (t) => {
	const { hear, pieces, answer } = listen()
	hear('message.assistant', { content: 'Wait.' })
	answer.ask('Which?')
	t.strictSame(pieces, ['Wait.', '\n\nWhich?'])
	t.equal(answer.text, 'Wait.\n\nWhich?')
	t.end()
})
