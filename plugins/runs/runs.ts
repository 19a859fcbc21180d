/** The service: taking runs in, looking at them, ending them. */
import { Fault, isFault } from '../../core/errors.ts'
import { now } from '../../core/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { JournalStep } from '../../core/run-log.ts'
import type { Job } from '../../core/store/ports.ts'
import { askedOf, watchAsked } from './asked.ts'
import { ANSWER_CHARACTERS, currentSession, messagesOf, newSession, sizeOf } from './conversation.ts'
import { censusOf } from './census.ts'
import type { Given, Question, RunRecord, Runs, RunSettings } from './contract.ts'
import { enqueue, stop } from './ending.ts'
import { endIn, messagesIn } from './journal.ts'
import { keys } from './keys.ts'
import type { Lane } from './keys.ts'
import { change, getRun, isEnded, jobOf } from './records.ts'
import { takeIn } from './start.ts'
import { settled, tellHolder, withFreeRun, withRun } from './turns.ts'

/** Characters of what a run may go on with. */
const PROGRESS_CHARACTERS = 1024 * 1024

export function runsOf(ctx: Context<RunSettings>): Runs {
	const { store, config } = ctx

	/** Unless its turn has come already. */
	const tellQueued = ({ run_id, agent, conversation }: RunRecord): Promise<void> =>
		withFreeRun(run_id, async () => {
			const log = await ctx.events.openRun({ run_id, agent_id: agent })
			if (log.journal.last === 0) await log.append([{ event_type: 'run.queued', payload: { conversation } }])
			log.close()
		})

	const stopAll = async (agent: AgentRef): Promise<void> => {
		const lanes: string[][] = []
		for await (const { value } of store.list<Lane>(keys.lanes(agent.uid))) lanes.push(value.runs)
		// Ids sort by time: a run before those that it started, so that none goes on just because another was stopped.
		for (const runs of lanes.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1))) {
			// From the back, so that none becomes active just to be stopped.
			for (const run_id of runs.toReversed()) await stop(ctx, agent.uid, run_id)
		}
	}

	return {
		async start(agent, request) {
			const conversation = request.conversation ?? (await currentSession(store, agent))
			const { run, isNew } = await takeIn(store, agent, { ...request, conversation }, config.max_waiting)
			// The agent's record lies in another scope. One that is marked by now may have been swept already; one that is
			// marked later finds this run.
			if (isNew && (await ctx.use('agents').find(agent.name))?.uid !== agent.uid) {
				await stop(ctx, agent.uid, run.run_id)
				await store.delete(keys.index(run.run_id))
				throw new Fault('not_found', `agent "${agent.name}" was deleted meanwhile`)
			}
			if (isNew && run.status === 'started') enqueue(ctx, jobOf(run))
			if (isNew && run.status === 'queued') await tellQueued(run)
			return run
		},
		async get(run_id) {
			await settled(run_id)
			return getRun(store, run_id)
		},
		async progress(run_id) {
			await settled(run_id)
			const { agent, agent_uid, status } = await getRun(store, run_id)
			if (!isEnded(status)) return [] // its log is another's to write
			const given = await store.get<Given>(keys.given(agent_uid, run_id))
			const log = await ctx.events.openRun({ run_id, agent_id: agent })
			log.close()
			const done = messagesIn(log.journal.steps as JournalStep[])
			const messages = [...(given?.value.since ?? []), ...done]
			return done.length > 0 && JSON.stringify(messages).length <= PROGRESS_CHARACTERS ? messages : []
		},
		async list(agent, { limit, before, status }) {
			const found: RunRecord[] = []
			let characters = 0
			const after = before === undefined ? {} : { after: keys.run(agent.uid, before) }
			for await (const { value } of store.list<RunRecord>(keys.runs(agent.uid), { reverse: true, ...after })) {
				const changed = !isEnded(value.status) && (await settled(value.run_id))
				const run = changed ? await getRun(store, value.run_id) : value
				if (status !== undefined && run.status !== status) continue
				characters += sizeOf(run)
				if (characters > ANSWER_CHARACTERS && found.length > 0) break
				found.push(run)
				if (found.length === limit) break
			}
			return found
		},
		async cancel(run_id) {
			const run = await getRun(store, run_id)
			if (isEnded(run.status)) throw new Fault('conflict', `run ${run_id} has ended already: ${run.status}`)
			await stop(ctx, run.agent_uid, run_id)
			return getRun(store, run_id)
		},
		stopAgent: stopAll,
		async forgetAgent(agent) {
			await stopAll(agent)
			for await (const { key } of store.list(keys.runs(agent.uid))) await store.delete(keys.index(key.at(-1) ?? ''))
		},
		async active(agent, conversation) {
			for (;;) {
				const lane = await store.get<Lane>(keys.lane(agent.uid, conversation))
				const run_id = lane?.value.runs[0]
				if (run_id === undefined) return undefined
				await settled(run_id)
				const run = (await store.get<RunRecord>(keys.run(agent.uid, run_id)))?.value
				// It gave up its place when it ended, in one write.
				if (!run || !isEnded(run.status)) return run
			}
		},
		asked: (run) => askedOf(store, run),
		watchAsked: (run_id, heard) => watchAsked(ctx, run_id, heard),
		async questions(agent) {
			const open: Question[] = []
			for await (const { value } of store.list<Question>(keys.questions(agent.uid))) {
				if (await isOpen(value, agent.uid)) open.push(value)
			}
			return open.toSorted((a, b) => (a.asked_at < b.asked_at ? -1 : 1))
		},
		async answer(agent, question_id, answer, also = []) {
			const job = await change<Job | null>(store, agent.uid, async () => {
				const question = await store.get<Question>(keys.question(agent.uid, question_id))
				if (!question)
					throw new Fault(
						'not_found',
						`agent "${agent.name}" has no question "${question_id}"; GET /v1/agents/${agent.name}/questions lists the open ones`,
					)
				if (question.value.answer !== null)
					throw new Fault('already_answered', `question "${question_id}" was answered at ${question.value.answered_at}`)
				if (question.value.closed)
					throw new Fault('conflict', `question "${question_id}" was ${closings[question.value.closed]}`)
				const entry = await store.get<RunRecord>(keys.run(agent.uid, question.value.run_id))
				if (!entry || isEnded(entry.value.status)) {
					throw new Fault(
						'conflict',
						`the run that asked question "${question_id}" has ended (${entry?.value.status ?? 'removed'}); nobody waits for the answer`,
					)
				}
				const next: RunRecord = { ...entry.value, status: 'started', question: null }
				const ops = [
					{
						key: question.key,
						value: { ...question.value, answer, answered_at: now() } satisfies Question,
						expect: question.rev,
					},
					{ key: entry.key, value: next, expect: entry.rev },
					...also,
				]
				// Whoever asked in the middle of a call is there still, and watches the question.
				return { ops, result: question.value.live ? null : jobOf(next, question_id) }
			})
			if (job) enqueue(ctx, job)
		},
		async tell({ run_id, agent_uid }, events) {
			if (await tellHolder(run_id, events)) return true
			return withRun(run_id, async () => {
				const run = (await store.get<RunRecord>(keys.run(agent_uid, run_id)))?.value
				if (!run || isEnded(run.status)) return false
				const log = await ctx.events.openRun({ run_id, agent_id: run.agent })
				try {
					if (endIn(log)) return false
					await log.append(events)
					return true
				} finally {
					log.close()
				}
			})
		},
		async isActive(run_id) {
			try {
				return !isEnded((await getRun(store, run_id)).status)
			} catch (error) {
				if (isFault(error, 'not_found')) return false
				throw error
			}
		},
		async isBusy(agent) {
			for await (const { value } of store.list<Lane>(keys.lanes(agent.uid))) {
				for (const run_id of value.runs) {
					await settled(run_id)
					const run = await store.get<RunRecord>(keys.run(agent.uid, run_id))
					if (run && (run.value.status === 'started' || run.value.status === 'queued')) return true
				}
			}
			return false
		},
		census: () => censusOf(ctx),
		async history(agent, conversation, turns) {
			const name = conversation ?? (await currentSession(store, agent))
			const lane = await store.get<Lane>(keys.lane(agent.uid, name))
			if (lane?.value.runs[0] !== undefined) await settled(lane.value.runs[0])
			return messagesOf(store, agent, name, turns)
		},
		session: (agent) => currentSession(store, agent),
		async reset(agent) {
			const session_id = await newSession(store, agent)
			await ctx.emit({ event_type: 'agent.reset', payload: { session_id } }, agent.name)
			return session_id
		},
	}

	async function isOpen(question: Question, uid: string): Promise<boolean> {
		if (question.answer !== null || question.closed) return false
		const run = await store.get<RunRecord>(keys.run(uid, question.run_id))
		return run !== undefined && !isEnded(run.value.status)
	}
}

/** Why nobody waits for an answer any more, for people. */
const closings = {
	expired: 'not answered in time (runs.question_ttl_days)',
	withdrawn: 'taken back with the call that asked it; where that is made again, so is the question',
}
