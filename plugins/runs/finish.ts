/** Ends a run after its execution: with an answer, with an error, or stopped. */
import { addUsage, usageOf } from '../../core/protocol.ts'
import type { ModelAnswer, ModelUsage, NewEvent } from '../../core/protocol.ts'
import type { Op } from '../../core/store/ports.ts'
import type { RunEnd } from '../usage/contract.ts'
import { learnFrom } from './context.ts'
import type { RunRecord } from './contract.ts'
import { end } from './ending.ts'
import { charge, hasActed, mayHaveFamily } from './family.ts'
import { completedWith, eventsOfAnswer, withShortReasoning } from './journal.ts'
import { keys } from './keys.ts'
import { logFieldsOf } from './work.ts'
import type { Final, LoggedRun, Work } from './work.ts'

export async function finish(
	logged: LoggedRun & Partial<Pick<Work, 'account' | 'lock' | 'active_ms' | 'models'>>,
	outcome: Final,
): Promise<void> {
	const { ctx, run, log, account } = logged
	const counting = (spent: readonly ModelUsage[] = []) =>
		account && { count: (end?: RunEnd): Promise<Op[]> => account.count(spent, end) }
	switch (outcome.status) {
		case 'completed': {
			const { usage, spent, ended_by } = outcome
			const answer = withShortReasoning(log, outcome.answer)
			learnFrom(answer, logged.models)
			const ended = { status: 'completed' as const, ...completedWith(answer, ended_by), usage }
			const { steps } = log.journal
			const stored = hasActed(steps) ? await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id)) : undefined
			const files = stored?.value.files
			const payload = { usage, finish_reason: ended.finish_reason, ...(files && { files }) }
			const events: NewEvent[] = [...eventsOfAnswer(answer), { event_type: 'run.completed', payload }]
			if (mayHaveFamily(run, steps)) await charge(ctx.store, run, usage)
			const step = { kind: 'model' as const, answer }
			await end(ctx, logged, ended, { events, step, ...counting(spent) })
			return account?.settle(spent)
		}
		case 'failed': {
			const { error, usage, spent = [] } = outcome
			const answer = error.code === 'model_empty' ? await answerOfFiles(logged) : undefined
			if (answer) return finish(logged, { status: 'completed', answer, usage, spent })
			ctx.log.warn({ ...logFieldsOf(run), code: error.code }, `a run failed: ${error.message}`)
			const { code, message, provider_code, provider_status } = error
			const provider = { ...(provider_code && { provider_code }), ...(provider_status && { provider_status }) }
			const payload = { error: message, code, ...provider, usage }
			const events = [{ event_type: 'run.failed', payload }]
			// The journal has no step with the usage of the last calls.
			if (spent.length > 0 && mayHaveFamily(run, log.journal.steps)) await charge(ctx.store, run, usage)
			await end(ctx, logged, { status: 'failed', error, usage }, { events, ...counting(spent) })
			return account?.settle(spent)
		}
		case 'stopped': {
			const actor = logged.lock?.stoppedBy()
			const { spent = [] } = outcome
			const { steps } = log.journal
			const usage = usageOf(steps)
			for (const call of spent) addUsage(usage, call.usage)
			const payload = { ...(actor && { actor }), ...(spent.length > 0 && { usage }) }
			if (spent.length > 0 && mayHaveFamily(run, steps)) await charge(ctx.store, run, usage)
			const events = [{ event_type: 'run.stopped', payload }]
			await end(ctx, logged, { status: 'stopped', usage }, { events, ...counting(spent) })
			return account?.settle(spent)
		}
	}
}

/** If a model sends files and then returns no text, the names of the files are its answer. Undefined for a run without files. */
async function answerOfFiles({ ctx, run, log }: LoggedRun): Promise<ModelAnswer | undefined> {
	const { files = [] } = (await ctx.store.get<RunRecord>(keys.run(run.agent_uid, run.run_id)))?.value ?? {}
	const last = log.journal.steps.findLast((step) => step.kind === 'model')
	if (files.length === 0 || !last) return undefined
	const { provider, model } = last.answer
	const content = files.map(({ name }) => name).join(', ')
	const usage = { input_tokens: 0, output_tokens: 0 }
	return { content, tool_calls: [], usage, provider, model, finish_reason: 'stop' }
}
