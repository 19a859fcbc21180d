/** The service: taking runs in, looking at them, ending them. */
import { Fault, isFault } from '../../core/errors.ts'
import { now } from '../../core/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { ANSWER_CHARACTERS, currentSession, messagesOf, newSession, sizeOf } from './conversation.ts'
import type { Question, RunRecord, Runs, RunSettings } from './contract.ts'
import { endIn } from './journal.ts'
import { keys } from './keys.ts'
import type { IndexEntry, Lane } from './keys.ts'
import { change, endRun, getRun, isEnded, jobOf } from './records.ts'
import { takeIn } from './start.ts'
import { settled, withFreeRun, withRun } from './turns.ts'
import type { Turn } from './turns.ts'

export function runsOf(ctx: Context<RunSettings>): Runs {
	const { store, queue, config } = ctx

	/** The lane in the store is what counts; a job is only a hint, and the next start makes one that got lost. */
	const enqueue = (run: RunRecord, question_id?: string): void => {
		queue
			.enqueue(jobOf(run, question_id))
			.catch((error: unknown) =>
				ctx.log.error({ err: error, run_id: run.run_id }, 'a run could not be queued; it goes on after the next start'),
			)
	}

	/** Unless its turn has come already. */
	const tellQueued = ({ run_id, agent, conversation }: RunRecord): Promise<void> =>
		withFreeRun(run_id, async () => {
			const log = await ctx.events.openRun({ run_id, agent_id: agent })
			if (log.journal.last === 0) await log.append([{ event_type: 'run.queued', payload: { conversation } }])
			log.close()
		})

	/** Ends it as stopped, whoever has it. Settles when nothing of it goes on. */
	const stop = (run_id: string, uid: string): Promise<void> => {
		const end = async (turn: Turn): Promise<void> => {
			const entry = await store.get<RunRecord>(keys.run(uid, run_id))
			if (!entry || isEnded(entry.value.status)) return
			const log = await ctx.events.openRun({ run_id, agent_id: entry.value.agent })
			turn.settling()
			// It may have ended in its log just before a crash, and nobody has taken it up since.
			const ended = endIn(log)
			if (!ended) await log.append([{ event_type: 'run.stopped', payload: {} }])
			log.close()
			const next = await endRun(store, uid, run_id, ended ?? { status: 'stopped' }, now())
			if (next) enqueue(next)
		}
		return withRun(run_id, end, 'stopped')
	}

	const stopAll = async (agent: AgentRef): Promise<void> => {
		for await (const { value } of store.list<Lane>(keys.lanes(agent.uid))) {
			// From the back, so that none becomes active just to be stopped.
			for (const run_id of value.runs.toReversed()) await stop(run_id, agent.uid)
		}
	}

	return {
		async start(agent, request) {
			const conversation = request.conversation ?? (await currentSession(store, agent))
			const { run, isNew } = await takeIn(store, agent, { ...request, conversation }, config.max_waiting)
			// The agent's record lies in another scope. One that is marked by now may have been swept already; one that is
			// marked later finds this run.
			if (isNew && (await ctx.use('agents').find(agent.name))?.uid !== agent.uid) {
				await stop(run.run_id, agent.uid)
				await store.delete(keys.index(run.run_id))
				throw new Fault('not_found', `agent "${agent.name}" was deleted meanwhile`)
			}
			if (isNew && run.status === 'started') enqueue(run)
			if (isNew && run.status === 'queued') await tellQueued(run)
			return run
		},
		async get(run_id) {
			await settled(run_id)
			return getRun(store, run_id)
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
			await stop(run_id, run.agent_uid)
			return getRun(store, run_id)
		},
		stopAgent: stopAll,
		async forgetAgent(agent) {
			await stopAll(agent)
			for await (const { key } of store.list(keys.runs(agent.uid))) await store.delete(keys.index(key.at(-1) ?? ''))
		},
		async questions(agent) {
			const open: Question[] = []
			for await (const { value } of store.list<Question>(keys.questions(agent.uid))) {
				if (value.answer === null && (await isOpen(value, agent.uid))) open.push(value)
			}
			return open.toSorted((a, b) => (a.asked_at < b.asked_at ? -1 : 1))
		},
		async answer(agent, question_id, answer) {
			const run = await change(store, agent.uid, async () => {
				const question = await store.get<Question>(keys.question(agent.uid, question_id))
				if (!question)
					throw new Fault(
						'not_found',
						`agent "${agent.name}" has no question "${question_id}"; GET /v1/agents/${agent.name}/questions lists the open ones`,
					)
				if (question.value.answer !== null)
					throw new Fault('already_answered', `question "${question_id}" was answered at ${question.value.answered_at}`)
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
				]
				return { ops, result: next }
			})
			enqueue(run, question_id)
		},
		async isActive(run_id) {
			try {
				return !isEnded((await getRun(store, run_id)).status)
			} catch (error) {
				if (isFault(error, 'not_found')) return false
				throw error
			}
		},
		async history(agent, conversation) {
			const name = conversation ?? (await currentSession(store, agent))
			const lane = await store.get<Lane>(keys.lane(agent.uid, name))
			if (lane?.value.runs[0] !== undefined) await settled(lane.value.runs[0])
			return messagesOf(store, agent, name)
		},
		session: (agent) => currentSession(store, agent),
		async reset(agent) {
			const session_id = await newSession(store, agent)
			await ctx.emit({ event_type: 'agent.reset', payload: { session_id } }, agent.name)
			return session_id
		},
	}

	async function isOpen(question: Question, uid: string): Promise<boolean> {
		const run = await store.get<RunRecord>(keys.run(uid, question.run_id))
		return run !== undefined && !isEnded(run.value.status)
	}
}

/** Makes a job for every run that is active by its lane, in case one got lost with a crash. Jobs that are there stay as they are. */
export async function requeue(ctx: Context<RunSettings>): Promise<void> {
	const { store, queue } = ctx
	const counts = { interrupted: 0, paused: 0 }
	for await (const agent of ctx.use('agents').list()) {
		for await (const { value } of store.list<Lane>(keys.lanes(agent.uid))) {
			const active = value.runs[0]
			const entry = active === undefined ? undefined : await store.get<RunRecord>(keys.run(agent.uid, active))
			if (!entry) continue
			if (entry.value.status === 'paused') {
				counts.paused++
				continue
			}
			counts.interrupted++
			await store.put(keys.index(entry.value.run_id), { agent: agent.name, uid: agent.uid } satisfies IndexEntry)
			await queue.enqueue(jobOf(entry.value))
		}
	}
	if (counts.interrupted + counts.paused > 0)
		ctx.log.info(counts, 'runs go on: interrupted ones now, paused ones once they are answered')
}
