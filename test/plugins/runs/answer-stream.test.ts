/** The pieces of an answer that a client receives, for all ways in which model calls fail and are retried. */
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { AnswerStream } from '../../../plugins/runs/answer-stream.ts'
import type { AnswerEnd } from '../../../plugins/runs/answer-stream.ts'

interface Recorded {
	answer: AnswerStream
	pieces: string[]
	ends: (AnswerEnd | undefined)[]
	handle(event_type: string, payload?: Record<string, unknown>): void
}

function record(): Recorded {
	const pieces: string[] = []
	const ends: (AnswerEnd | undefined)[] = []
	const answer = new AnswerStream((text) => pieces.push(text))
	const handle = (event_type: string, payload: Record<string, unknown> = {}): void =>
		void ends.push(answer.handle({ event_type, payload }))
	return { answer, pieces, ends, handle }
}

const usage = { input_tokens: 2, output_tokens: 1 }

interface Call {
	/** The text of each attempt that failed. */
	attempts: string[]
	/** The text of the answer. */
	text: string
	fallback: boolean
}

function play({ handle }: Recorded, { attempts, text, fallback }: Call): void {
	handle('model.request')
	for (const attempt of attempts) {
		for (const piece of attempt.match(/[^]{1,3}/g) ?? []) handle('model.stream', { content: piece })
		handle(fallback ? 'model.fallback' : 'model.retry')
		if (fallback) handle('model.request')
	}
	for (const piece of text.match(/[^]{1,2}/g) ?? []) handle('model.stream', { content: piece })
	handle('model.response', { model: 'm', usage })
	if (text !== '') handle('message.assistant', { content: text })
}

const letters = ['a', 'b', '\n', '😀']
const few = fc.string({ unit: fc.constantFrom(...letters), maxLength: 6 })
const call = fc.record({ attempts: fc.array(few, { maxLength: 3 }), text: few, fallback: fc.boolean() })
/** Each attempt is a prefix of the answer, so that all pieces stay valid. */
const steadyCall = fc
	.record({ text: few, cuts: fc.array(fc.nat({ max: 6 }), { maxLength: 3 }), fallback: fc.boolean() })
	.map(({ text, cuts, fallback }) => {
		const attempts = cuts.map((cut) => Array.from(text).slice(0, cut).join(''))
		return { attempts, text, fallback }
	})
const runOf = (anyCall: fc.Arbitrary<Call>) => fc.array(anyCall, { minLength: 1, maxLength: 4 })

/** Plays a run, and compares its answer with the pieces. Returns whether they are the complete answer. */
function isWhole(t: Test, calls: Call[]): boolean {
	const recorded = record()
	for (const call of calls) play(recorded, call)
	recorded.handle('run.completed')
	const { answer, pieces, ends } = recorded
	const texts = calls.map(({ text }) => text).filter((text) => text !== '')
	t.equal(answer.text, texts.join('\n\n'))
	t.strictSame(ends.at(-1), { status: 'completed' })
	if (answer.isWhole) t.equal(pieces.join(''), answer.text)
	return answer.isWhole
}

void t.test('the pieces are the text if isWhole is true', (t) => {
	fc.assert(
		fc.property(runOf(call), runOf(steadyCall), ([first, ...rest], steady) => {
			if (!first) throw new Error('a run has at least one call')
			isWhole(t, [first, ...rest])
			t.ok(isWhole(t, steady))
			// No text contains this letter.
			t.notOk(isWhole(t, [{ ...first, attempts: [...first.attempts, 'c'] }, ...rest]))
		}),
		{ numRuns: 200 },
	)
	t.end()
})

void t.test('missing pieces are taken from the complete message', (t) => {
	const { handle, pieces, answer } = record()
	handle('model.request')
	handle('model.stream', { content: 'It is ' })
	handle('model.response', { model: 'm', usage })
	handle('security.redacted', { name: 'X' })
	handle('message.assistant', { content: 'It is blue.' })
	handle('run.completed')
	t.strictSame(pieces, ['It is ', 'blue.'])
	t.ok(answer.isWhole)
	t.strictSame(answer.usage, usage)
	t.end()
})

void t.test('a question is appended to the text', (t) => {
	const { handle, pieces, answer } = record()
	handle('message.assistant', { content: 'Wait.' })
	answer.ask('Which?')
	t.strictSame(pieces, ['Wait.', '\n\nWhich?'])
	t.equal(answer.text, 'Wait.\n\nWhich?')
	t.end()
})
