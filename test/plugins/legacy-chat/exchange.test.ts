/** Which run a message goes to, by itself: what the chat asks of the runs. */
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { begin } from '../../../plugins/legacy-chat/exchange.ts'
import type { RunRecord, Runs } from '../../../plugins/runs/contract.ts'

const ada = { name: 'ada', uid: 'u' }

/** Says something where the session has this active run. Answers with what was asked of the runs. */
async function say(active?: Partial<RunRecord>): Promise<unknown[][]> {
	const asked: unknown[][] = []
	// Nothing else may be asked: not for all questions of the agent, of which there may be thousands.
	const runs: Partial<Runs> = {
		session: async () => 's',
		active: async (_, conversation) => {
			asked.push(['active', conversation])
			return active as RunRecord | undefined
		},
		asked: async ({ run_id, question }) => question && { ...question, run_id },
		watchAsked: () => () => {},
		answer: async (_, question_id, answer) => void asked.push(['answer', question_id, answer]),
		start: async (_, { conversation, prompt }) => {
			asked.push(['start', conversation, prompt])
			return { run_id: 'new' } as RunRecord
		},
	}
	const ctx = { use: () => runs, events: { subscribe: () => () => {} } } as unknown as Context
	await begin(ctx, ada, { message: 'hello' }, new AbortController().signal)
	return asked
}

void t.test(
	'a message answers the question of the active run of its own conversation, and looks no further',
	async (t) => {
		const looked = ['active', 's']
		const start = ['start', 's', 'hello']
		const question = { question_id: 'q', question: 'Who?' }
		t.strictSame(await say(), [looked, start])
		t.strictSame(await say({ run_id: 'r', trigger: 'chat', question: null }), [looked, start])
		t.strictSame(await say({ run_id: 'r', trigger: 'chat', question }), [looked, ['answer', 'q', 'hello']])
		await t.rejects(say({ run_id: 'r', trigger: 'api', question }), { code: 'conflict', message: /ask-responses\/q/ })
	},
)
