/** Executes the tool calls that a run's thread requests. */
import type { ToolFile } from '../../core/plugin.ts'
import type { ToolCallRequest, ToolReply } from '../../core/protocol.ts'
import { openQuestionQueue } from './questions.ts'
import type { QuestionQueue } from './questions.ts'
import { policyOf } from './call-policy.ts'
import { forModel } from './for-model.ts'
import { callTool } from './tool-call.ts'
import { storeFiles } from './tool-files.ts'
import { whyMissing } from './tools-ready.ts'
import { askApproval, beginWait } from './waits.ts'
import { inContext } from './work.ts'
import type { Work } from './work.ts'

/** `over`: aborts when the execution ends. `hold`: see `openQuestionQueue`. */
export function openCalls(work: Work, over: AbortSignal, hold: () => () => void) {
	const { ctx, run, agent, log } = work
	const begun = new Set(log.journal.steps.flatMap((step) => (step.kind === 'begun' ? [step.call_id] : [])))
	/** The unredacted calls of the latest answer, by the id that the thread uses. */
	let asWritten = new Map<string, ToolCallRequest>()
	/** Of all calls; opened by the first one, since most runs make none. */
	let shared: QuestionQueue | undefined
	return {
		/** `redacted`: the calls of the model's latest answer as the thread gets them; `written`: as the model wrote them. */
		expect(redacted: readonly ToolCallRequest[], written: readonly ToolCallRequest[]): void {
			asWritten = new Map(redacted.map(({ id }, at) => [id, written[at] as ToolCallRequest]))
		},
		/** `redacted`: the call as the thread has it. */
		async call(redacted: ToolCallRequest): Promise<ToolReply> {
			// The model's output may contain a secret: the tool gets it, but the thread and later requests do not.
			const call = asWritten.get(redacted.id) ?? redacted
			const questions = (shared ??= openQuestionQueue(work, AbortSignal.any([work.lock.signal, over]), hold))
			const asking = questions.of(call)
			const site = {
				run_id: run.run_id,
				agent,
				conversation: run.conversation,
				signal: questions.signal,
				log,
				policy: await policyOf(ctx, agent, log.journal),
				ask: asking.ask,
				closeQuestions: asking.close,
				forModel: (text: string, also: ReadonlySet<string>) => forModel(work, text, also),
				result_characters: work.limits.result_characters,
				interrupted: begun.has(call.id),
				attach: (files: readonly ToolFile[]) => storeFiles(ctx, run, agent, files, log.redactor),
				whyMissing: (name: string) => whyMissing(ctx, agent, name),
			}
			// The tools are read for each call, since a reload may have changed them. The context is set here, since the thread
			// serves other runs too.
			const result = await inContext(run, async () => {
				const tools = run.tools === 'none' ? [] : await ctx.toolbox.list(agent)
				return callTool(tools, call, site, ctx.log)
			})
			const waited_ms = questions.takeWaited()
			work.waited_ms += waited_ms
			if (result.status === 'waits') return questions.whileNoneIsOpen(() => beginWait(work, call, result.wait))
			if (result.status === 'asks') return questions.whileNoneIsOpen(() => askApproval(work, call, result.wanted))
			return waited_ms > 0 ? { ...result, waited_ms } : result
		},
		/** Settles once the questions of pending calls are withdrawn, after `over` has aborted. */
		untilWithdrawn: async (): Promise<void> => shared?.idle(),
	}
}
