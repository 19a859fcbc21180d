/** The state of a run after its events. */
import t from 'tap'
import { isEnded, openQuestion, stateAfter } from '../../../plugins/runs/run-state.ts'
import type { RunState } from '../../../plugins/runs/run-state.ts'

function after(...events: [string, Record<string, unknown>?][]): RunState {
	let state: RunState = { status: 'queued', question: null }
	for (const [event_type, payload = {}] of events) state = stateAfter(state, { event_type, payload })
	return state
}
const ask = (question_id: string): [string, Record<string, unknown>][] => [
	['question.asked', { question_id, question: `${question_id}?` }],
	['run.paused', { question_id }],
]
const answer = (question_id: string): [string, Record<string, unknown>][] => [
	['question.answered', { question_id, answer: 'yes' }],
	['run.resumed', { reason: 'answer', question_id }],
]

void t.test('a question is open from the pause to the answer', async (t) => {
	t.equal(openQuestion(after(['run.started'], ['question.asked', { question_id: 'a' }])), null)
	t.match(openQuestion(after(['run.started'], ...ask('a'))), { question_id: 'a', question: 'a?' })
	t.strictSame(after(['run.started'], ...ask('a'), ...answer('a')), { status: 'started', question: null })
	t.match(openQuestion(after(...ask('a'), ...answer('a'), ...ask('b'))), { question_id: 'b' })
	t.match(openQuestion(after(...ask('a'), ...ask('b'), ...answer('a'))), { question_id: 'b' })
})

void t.test('a run that waits for another run has no open question', async (t) => {
	const state = after(['run.started'], ['run.paused', { waits_for: 'r' }])
	t.match(state, { status: 'paused', waits_for: 'r' })
	t.equal(openQuestion(state), null)
	t.notOk(after(['run.paused', { waits_for: 'r' }], ['run.resumed', { reason: 'subagent', run_id: 'r' }]).waits_for)
})

void t.test('a run ends once, and other events change nothing', async (t) => {
	for (const status of ['completed', 'failed', 'stopped']) {
		const state = after(['run.started'], [`run.${status}`])
		t.equal(state.status, status)
		t.ok(isEnded(state.status))
	}
	const state = after(['run.started'])
	t.notOk(isEnded(state.status))
	t.equal(stateAfter(state, { event_type: 'model.request', payload: {} }), state)
})
