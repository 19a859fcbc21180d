/** The service `runs`: starts, reads and ends runs. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Fault, isFault } from '../../core/errors.ts'
import { now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { NewEvent } from '../../core/protocol.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { openQuestionOf } from './open-question.ts'
import { revoke, permanentApprovals } from './approvals.ts'
import { answerQuestion, openQuestions } from './answer-question.ts'
import { untilStored } from './begin.ts'
import { converse, follow } from './converse.ts'
import { currentSession, messagesOf, mustExist, newSession } from './conversation.ts'
import { censusOf } from './census.ts'
import { deliverFields } from './deliver-fields.ts'
import { destinationOf } from './destination.ts'
import { contextReport } from './compose-order.ts'
import type { RunInputs, RunRecord, Runs, RunSettings } from './contract.ts'
import { openLog, stop } from './ending.ts'
import { resultIn } from './follower.ts'
import { forgetConversation } from './forget.ts'
import { messagesIn } from './journal.ts'
import { keys } from './keys.ts'
import type { ConversationQueue } from './keys.ts'
import { callNested } from './nested-call.ts'
import { openRun } from './run-log.ts'
import { saidOf } from './said.ts'
import { allRuns, runsOfAgent, startedIn } from './run-lists.ts'
import { findRun, getRun, readRun } from './records.ts'
import { isEnded } from './run-state.ts'
import { openQueueLimits } from './queue-limits.ts'
import { retryRun } from './retry.ts'
import { startRun } from './start.ts'
import { summariesOf } from './summaries.ts'
import { stopTogether, appendByHolder, withRun } from './run-lock.ts'
import { visibleRuns } from './visible.ts'

/** Limit of characters that `progress` returns. */
const PROGRESS_CHARACTERS = 1024 * 1024

export function runsOf(ctx: Context<RunSettings>): Runs {
	const { store } = ctx

	const checkQueueLimits = openQueueLimits(ctx)
	const runs: Runs = {
		converse: (agent, message, listener) => converse(ctx, runs, agent, message, listener),
		follow: (run_id, listener) => follow(ctx, runs, run_id, listener),
		result: async (run) => resultIn(run, await openQuestionOf(store, run)),
		start: (agent, request) => startRun(ctx, checkQueueLimits, agent, request),
		context: (agent, conversation) => contextReport(ctx, agent, conversation),
		...destinationOf(ctx),
		deliverFields,
		...saidOf(ctx),
		get: (run_id) => getRun(store, run_id),
		find: (run_id) => findRun(store, run_id),
		async progress(run_id) {
			const { agent, agent_uid, status } = await getRun(store, run_id)
			if (!isEnded(status)) return [] // only its holder may write its log
			const given = await store.get<RunInputs>(keys.given(agent_uid, run_id))
			const log = await openRun(ctx.events, { run_id, agent_id: agent })
			log.close()
			const done = messagesIn(log.journal)
			const messages = [...(given?.value.since ?? []), ...done]
			return done.length > 0 && JSON.stringify(messages).length <= PROGRESS_CHARACTERS ? messages : []
		},
		list: (agent, options) => runsOfAgent(store, agent, options),
		listAll: (options) => allRuns(ctx, options),
		visibleTo: (caller) => (caller.agents ? visibleRuns(runs, ctx.use('agents'), caller) : runs),
		retry: (run_id) => retryRun(runs, run_id),
		async cancel(run_id) {
			const run = await getRun(store, run_id)
			if (isEnded(run.status)) throw new Fault('conflict', `run ${run_id} has ended already: ${run.status}`)
			await stop(ctx, run.agent_uid, run_id)
			await nextTurn() // event streams are written in this turn, so clients see the end before the response
			return getRun(store, run_id)
		},
		async stop(run_id) {
			try {
				await runs.cancel(run_id)
				return true
			} catch (error) {
				if (isFault(error, 'conflict', 'not_found')) return false
				throw error
			}
		},
		async stopAgent(agent) {
			await untilStored(agent.uid)
			const stored = store.list<ConversationQueue>(keys.queues(agent.uid))
			const queues = await Array.fromAsync(stored, ({ value }) => value.runs)
			// Parents before the runs that they started (ids sort by time), so that no parent continues when its child is stopped.
			const ordered = queues.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))
			// Each queue from its end, so that no queued run becomes active only to be stopped.
			const ids = ordered.flatMap((runs) => runs.toReversed())
			await stopTogether(ids, (run_id) => stop(ctx, agent.uid, run_id))
			await nextTurn() // as in cancel
		},
		async stopStarted({ uid }, conversation) {
			const ids = await startedIn(store, uid, conversation)
			await stopTogether(ids, (run_id) => stop(ctx, uid, run_id))
			return ids.length
		},
		async active(agent, conversation) {
			for (;;) {
				const queue = await store.get<ConversationQueue>(keys.queue(agent.uid, conversation))
				const run_id = queue?.value.runs[0]
				if (run_id === undefined) return undefined
				const run = await readRun(store, agent.uid, run_id)
				// A run leaves the queue in the write that ends it: if it has ended, the queue has changed since it was read.
				if (!run || !isEnded(run.status)) return run
			}
		},
		asked: (run) => openQuestionOf(store, run),
		questions: (agent) => openQuestions(store, agent),
		answer: (agent, question_id, given, also) => answerQuestion(ctx, agent, question_id, given, also),
		approvals: (agent) => permanentApprovals(store, agent),
		revokeApproval: (agent, approval_id) => revoke(store, agent, approval_id),
		appendEvents: (run, events) => appendTo(run, events, false),
		report: (run, events) => appendTo(run, events, true),
		callPrimitive: async (call, name, args) => callNested(await ctx.toolbox.list(call.agent), name, args, call),
		async isActive(run_id) {
			const run = await findRun(store, run_id)
			return run !== undefined && !isEnded(run.status)
		},
		async isBusy(agent, conversation) {
			for await (const { key, value } of store.list<ConversationQueue>(keys.queues(agent.uid))) {
				let isPaused = false
				for (const run_id of value.runs) {
					const run = await store.get<RunRecord>(keys.run(agent.uid, run_id))
					isPaused ||= run?.value.status === 'paused'
					// Runs behind a paused run may wait for days.
					const isWaiting = run?.value.status === 'queued' && (!isPaused || key.at(-1) === conversation)
					const isWork = isWaiting || run?.value.status === 'started'
					if (isWork && run?.value.trigger !== 'summary') return true
				}
			}
			return false
		},
		census: () => censusOf(ctx),
		async history(agent, conversation, turns) {
			const name = conversation ?? (await currentSession(store, agent))
			return messagesOf(store, agent, name, turns)
		},
		session: (agent) => currentSession(store, agent),
		newSession: async (agent) => reportSession(agent, (await newSession(store, agent)).session_id),
		async reset(agent) {
			const { session_id } = await newSession(store, agent)
			await deleteAll(store, keys.allShortTerm(agent.uid))
			return reportSession(agent, session_id)
		},
		async clear(agent) {
			const { session_id, old } = await newSession(store, agent, true)
			await forgetConversation(ctx, agent.uid, old)
			return reportSession(agent, session_id)
		},
		async forget(agent, conversation) {
			await mustExist(store, agent, conversation)
			if (conversation === (await currentSession(store, agent))) await runs.clear(agent)
			else {
				await store.put(keys.forgetting(agent.uid, conversation), { at: now() })
				await forgetConversation(ctx, agent.uid, conversation)
			}
			await ctx.emit({ event_type: 'conversation.deleted', payload: { conversation } }, agent.name)
		},
		compact: (agent, conversation) => summaries.compact(agent, conversation),
		forgetNotes: ({ uid }, conversation) => store.delete(keys.shortTerm(uid, conversation)),
	}
	const summaries = summariesOf(ctx, runs)
	for (const type of ['run.completed', 'run.failed', 'run.stopped'])
		ctx.on(type, ({ run_id }) => run_id !== null && summaries.ended(run_id))
	return runs

	async function appendTo(
		{ run_id, agent_uid }: Pick<RunRecord, 'run_id' | 'agent_uid'>,
		events: NewEvent[],
		evenIfEnded: boolean,
	): Promise<boolean> {
		if (await appendByHolder(run_id, events)) return true
		return withRun(run_id, async () => {
			const run = await readRun(store, agent_uid, run_id)
			if (!run) return false
			// If the log has ended but the record has not, `openLog` updates the record first: it recognizes the end by the last event.
			const open = isEnded(run.status) ? null : await openLog(ctx, run)
			if (!open && !evenIfEnded) return false
			const log = open ?? (await openRun(ctx.events, { run_id, agent_id: run.agent }))
			try {
				await log.append(events)
				return true
			} finally {
				log.close()
			}
		})
	}

	async function reportSession(agent: AgentRef, session_id: string): Promise<string> {
		await ctx.emit({ event_type: 'agent.reset', payload: { session_id } }, agent.name)
		return session_id
	}
}
