/** A thread of another gateway may send anything: a field of another type than the protocol's is refused. */
import t from 'tap'
import { checkCall, checkEvent, checkOutcome } from '../../../core/runs/check-message.ts'
import type { ModelAnswer, RunOutcome, ToMain, Usage, WorkerEvent } from '../../../core/protocol.ts'

type Call = Extract<ToMain, { kind: 'call' }>

const usage: Usage = { input_tokens: 1, output_tokens: 2, cached_tokens: 1, reasoning_tokens: 1, cost: 0.5 }
const spent = [{ provider: 'one', model: 'm', usage }]
const call = { id: 'c1', name: 'clock.now', arguments: '{}' }
const provider_state = { kind: 'openai', provider: 'one', model: 'm', data: '{}', digest: 'd' }
const answer: ModelAnswer = {
	content: 'hello',
	tool_calls: [call],
	usage,
	estimate: 3,
	provider: 'one',
	model: 'm',
	finish_reason: 'stop',
	reasoning: 'because',
	provider_state,
}

const calls: Call[] = [
	{ kind: 'call', id: 1, method: 'reserve', params: { provider: 'one', model: 'm', tokens: 4, cost: 1 } },
	{ kind: 'call', id: 1, method: 'model', params: { answer, spent } },
	{ kind: 'call', id: 1, method: 'remark', params: { about: 'limit_steps', content: 'one more', last: true } },
	{ kind: 'call', id: 1, method: 'tool', params: { call } },
	{ kind: 'call', id: 1, method: 'blob', params: { blob: 'sha256:0', media_type: 'image/png' } },
]
const outcomes: RunOutcome[] = [
	{ status: 'completed', answer, usage, spent, ended_by: 'limit_steps' },
	{
		status: 'failed',
		error: { code: 'internal', message: 'no', provider_code: 'x', provider_status: 400 },
		usage,
		spent,
	},
	{ status: 'paused', waits_for: 'q1' },
]
const lost = { code: 'thread_lost', message: /invalid message/ }

void t.test('a call with a field of another type is refused', (t) => {
	for (const one of calls) {
		t.doesNotThrow(() => checkCall(one), one.method)
		for (const [at, params] of broken(one.params))
			t.throws(() => checkCall({ ...one, params } as Call), lost, `${one.method}: ${at}`)
	}
	for (const method of ['constructor', 'no-such']) t.throws(() => checkCall({ ...calls[0], method } as never), lost)
	t.end()
})

void t.test('an outcome with a field of another type is refused', (t) => {
	for (const one of outcomes) {
		t.equal(checkOutcome(one), one)
		for (const [at, outcome] of broken(one))
			t.throws(() => checkOutcome(outcome as RunOutcome), lost, `${one.status}: ${at}`)
	}
	t.throws(() => checkOutcome({ status: 'stopped' }), lost, 'only the gateway stops a run')
	t.end()
})

void t.test('an event that no thread emits is refused', (t) => {
	const event: WorkerEvent = { event_type: 'context.shrunk', payload: { tokens: 10 } }
	t.doesNotThrow(() => checkEvent(event))
	for (const [at, other] of broken(event)) t.throws(() => checkEvent(other as WorkerEvent), lost, at)
	t.throws(() => checkEvent({ ...event, event_type: 'run.completed' } as never), lost)
	t.end()
})

/** Copies of `value`, each with one field of another type. Provider state is opaque and not changed. */
function* broken(value: unknown, at = ''): Generator<[at: string, copy: unknown]> {
	if (typeof value !== 'object' || value === null || value === provider_state) return
	for (const [name, inner] of Object.entries(value)) {
		const put = (other: unknown): unknown =>
			Array.isArray(value) ? value.with(Number(name), other) : { ...value, [name]: other }
		for (const other of typeof inner === 'number' ? ['1', -1, Number.NaN, Infinity] : [1])
			yield [`${at}.${name} = ${other}`, put(other)]
		for (const [below, copy] of broken(inner, `${at}.${name}`)) yield [below, put(copy)]
	}
}
