/** What a client is told while an answer is made, for any way in which model calls break off and begin anew. */
import fc from 'fast-check'
import t from 'tap'
import { AnswerStream } from '../../core/answer-stream.ts'
import type { AnswerEnd } from '../../core/answer-stream.ts'

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
		void ends.push(answer.hear({ event_type, payload }))
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

const few = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '😀'), maxLength: 6 })
const call = fc.record({ attempts: fc.array(few, { maxLength: 3 }), words: few, fallback: fc.boolean() })

void t.test('the pieces are the text, or it says that they are not', (t) => {
	let [whole, broken] = [0, 0]
	fc.assert(
		fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), (calls) => {
			const told = listen()
			for (const one of calls) play(told, one)
			told.hear('run.completed')
			const { answer, pieces, ends } = told
			const text = calls
				.map(({ words }) => words)
				.filter((words) => words !== '')
				.join('\n\n')
			t.equal(answer.text, text)
			t.strictSame(ends.at(-1), { status: 'completed' })
			if (answer.isWhole) {
				whole++
				t.equal(pieces.join(''), text)
			} else broken++
			const isSteady = calls.every(({ attempts, words }) => attempts.every((attempt) => words.startsWith(attempt)))
			if (isSteady) t.ok(answer.isWhole)
		}),
		{ numRuns: 500 },
	)
	t.ok(whole > 50 && broken > 50, `${whole} whole, ${broken} broken`)
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

void t.test('a run that waits for another run has not ended, one that asks has', (t) => {
	const { hear, pieces, ends, answer } = listen()
	hear('run.paused', { waits_for: 'r2' })
	hear('question.asked', { question_id: 'q', question: 'Which?', options: ['a', 'b'] })
	hear('run.paused', { question_id: 'q' })
	t.strictSame(ends, [undefined, undefined, { status: 'asks', question_id: 'q' }])
	t.strictSame(pieces, ['Which?\n- a\n- b'])
	t.equal(answer.text, 'Which?\n- a\n- b')
	t.end()
})
