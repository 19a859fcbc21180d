/** A person who answers the questions of MCP servers. */
import type { Test } from 'tap'
import type { Answer } from '../../support/gateway.ts'
import type { Followed } from '../../support/runs.ts'

/** Answers the questions of a run in order. Returns the questions and, once the run has completed, the result of its tool. */
export async function converse(
	t: Test,
	agent: Followed,
	run_id: string,
	answers: string[],
): Promise<{ asked: Answer[]; result: string }> {
	const asked: Answer[] = []
	for (const [at, answer] of answers.entries()) {
		const { payload } = await agent.waitFor(run_id, 'question.asked', at + 1)
		asked.push(payload)
		await agent.waitFor(run_id, 'run.paused', at + 1)
		const reply = await agent.call(`ask-responses/${payload.question_id}`, { answer })
		t.equal(reply.status, 200, JSON.stringify(reply.body))
	}
	const ended = await agent.ended(run_id)
	t.equal(ended.event_type, 'run.completed', JSON.stringify(ended.payload))
	const result = agent.eventsOf(run_id).find((event) => event.event_type === 'mcp.result')?.payload.result
	return { asked, result: String(result) }
}
