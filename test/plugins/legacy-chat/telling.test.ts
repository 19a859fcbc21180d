/** What a client is told while an answer is made, for any way in which model calls break off and begin anew. */
import fc from 'fast-check'
import t from 'tap'
import { Telling } from '../../../plugins/legacy-chat/telling.ts'
import type { End } from '../../../plugins/legacy-chat/telling.ts'

interface Told {
	telling: Telling
	tokens: string[]
	ends: (End | undefined)[]
	hear(event_type: string, payload?: Record<string, unknown>): void
}

function listen(): Told {
	const tokens: string[] = []
	const ends: (End | undefined)[] = []
	const telling = new Telling({ token: (text) => tokens.push(text), invokeStart() {}, invokeEnd() {} })
	const hear = (event_type: string, payload: Record<string, unknown> = {}): void =>
		void ends.push(telling.hear({ event_type, payload }))
	return { telling, tokens, ends, hear }
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

void t.test('the tokens are the reply, or it says that they are not', (t) => {
	let [whole, broken] = [0, 0]
	fc.assert(
		fc.property(fc.array(call, { minLength: 1, maxLength: 4 }), (calls) => {
			const told = listen()
			for (const one of calls) play(told, one)
			told.hear('run.completed')
			const { telling, tokens, ends } = told
			const text = calls
				.map(({ words }) => words)
				.filter((words) => words !== '')
				.join('\n\n')
			t.equal(telling.text, text)
			t.strictSame(ends.at(-1), { status: 'answered' })
			if (telling.isWhole) {
				whole++
				t.equal(tokens.join(''), text)
			} else broken++
			const isSteady = calls.every(({ attempts, words }) => attempts.every((attempt) => words.startsWith(attempt)))
			if (isSteady) t.ok(telling.isWhole)
		}),
		{ numRuns: 500 },
	)
	t.ok(whole > 50 && broken > 50, `${whole} whole, ${broken} broken`)
	t.end()
})

void t.test('pieces that never came are made up for by the whole words', (t) => {
	const { hear, tokens, telling } = listen()
	hear('model.request')
	hear('model.stream', { content: 'It is ' })
	hear('model.response', { model: 'm', usage })
	hear('security.redacted', { name: 'X' })
	hear('message.assistant', { content: 'It is blue.' })
	hear('run.completed')
	t.strictSame(tokens, ['It is ', 'blue.'])
	t.ok(telling.isWhole)
	t.equal(telling.tokens_used, 3)
	t.end()
})

void t.test('a run that waits for another run has not ended, one that asks has', (t) => {
	const { hear, tokens, ends, telling } = listen()
	hear('run.paused', { waits_for: 'r2' })
	hear('question.asked', { question_id: 'q', question: 'Which?', options: ['a', 'b'] })
	hear('run.paused', { question_id: 'q' })
	t.strictSame(ends, [undefined, undefined, { status: 'answered', question_id: 'q' }])
	t.strictSame(tokens, ['Which?\n- a\n- b'])
	t.equal(telling.text, 'Which?\n- a\n- b')
	t.end()
})

void t.test('calls of tools show by the names of the tools, whatever their events are named', (t) => {
	const shown: unknown[] = []
	const telling = new Telling({
		token() {},
		invokeStart: (skill, args) => shown.push([skill, args]),
		invokeEnd: (result) => shown.push(result),
	})
	const hear = (event_type: string, payload: Record<string, unknown>): void =>
		void telling.hear({ event_type, payload })
	hear('skill.invoked', { skill: 'weather', skill_id: 's', call_id: '1', arguments: '{"city":"Bonn"}' })
	hear('primitive.called', { primitive: 'memory.recall', call_id: '1.a', arguments: '' })
	hear('primitive.result', { primitive: 'memory.recall', call_id: '1.a', result: '[]' })
	hear('skill.logged', { skill: 'weather', skill_id: 's', lines: ['x'] })
	hear('skill.completed', { skill: 'weather', skill_id: 's', call_id: '1', result: 'rain' })
	hear('mcp.called', { server: 'shop', tool: 'buy', call_id: '2', arguments: '{"no JSON' })
	hear('mcp.failed', { server: 'shop', tool: 'buy', call_id: '2', code: 'mcp_failed', message: 'sold out' })
	hear('clock.asked', { tool: 'clock', call_id: '3', arguments: '{}' })
	hear('primitive.failed', { primitive: 'x', call_id: 'unheard', code: 'tool_failed', message: 'm' })
	t.strictSame(shown, [
		['weather', { city: 'Bonn' }],
		['memory.recall', {}],
		'[]',
		'rain',
		['mcp__shop__buy', '{"no JSON'],
		'{"error":{"code":"mcp_failed","message":"sold out"}}',
		['clock', {}],
	])
	t.strictSame([...telling.skills], ['weather', 'memory.recall', 'mcp__shop__buy', 'clock'])
	t.end()
})
