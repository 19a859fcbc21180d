import t from 'tap'
import type { ModelUsage, RunOrder, ToMain } from '../../../core/protocol.ts'
import { ActiveRun } from '../../../core/runs/active-run.ts'
import type { RunHost } from '../../../core/runs/active-run.ts'

const usage = { input_tokens: 3, output_tokens: 4 }
const spent: ModelUsage[] = [{ provider: 'p', model: 'm', usage }]
const answer = { content: 'Done.', tool_calls: [], usage, provider: 'p', model: 'm', finish_reason: 'stop' as const }

/** Messages in transit when the run was stopped, and the usage to count. */
const late: Record<string, { messages: ToMain[]; spent?: ModelUsage[] }> = {
	'an answer that calls tools': {
		messages: [
			{ kind: 'call', id: 1, method: 'model', params: { answer, spent } },
			{ kind: 'outcome', outcome: { status: 'stopped', spent } },
		],
		spent: [...spent, ...spent],
	},
	'the last answer': { messages: [{ kind: 'outcome', outcome: { status: 'completed', answer, usage, spent } }], spent },
	'a failure': {
		messages: [
			{ kind: 'outcome', outcome: { status: 'failed', error: { code: 'internal', message: '' }, usage, spent } },
		],
		spent,
	},
	'invalid messages': {
		messages: [
			{ kind: 'call', id: 1, method: 'model', params: null } as never,
			{ kind: 'outcome', outcome: { status: 'stopped', spent: [{ provider: 'p' }] } } as never,
		],
	},
}

void t.test('a stopped run counts the usage of its thread', async (t) => {
	for (const [what, { messages, spent: counted }] of Object.entries(late)) {
		const run = new ActiveRun({
			order: { run_id: 'r', journal: [], limits: {}, remaining_ms: 60_000 } as unknown as RunOrder,
			host: { model: () => t.fail('the host is not called after a stop') } as unknown as RunHost,
			graceMs: 60_000,
			over() {},
		})
		run.start(() => ({ order() {}, post() {}, terminate() {}, release() {} }))
		run.receive({ kind: 'hello' } as ToMain)
		const stopped = run.abort('enough')
		for (const message of messages) run.receive(message)
		await stopped
		t.strictSame(await run.outcome, { status: 'stopped', ...(counted && { spent: counted }) }, what)
	}
})
