/**
 * The question that a run waits for: its own, or that of a sub-agent for whose end it waits, or of one below that. The
 * records say so; events only tell when to look at them again. So nothing of it can get lost with a crash.
 */
import { isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import type { Asked, RunRecord } from './contract.ts'
import { keys } from './keys.ts'
import { getRun, isEnded } from './records.ts'
import { settled } from './turns.ts'

/** Runs that wait one for the next; far more than may stand below one another. */
const LINE_LIMIT = 16

/** As `Runs.asked`. */
export async function askedOf(store: Store, run: RunRecord): Promise<Asked | null> {
	return questionAt(await lineFrom(store, run))
}

/** As `Runs.watchAsked`. */
export function watchAsked(
	{ store, events, log }: Pick<Context, 'store' | 'events' | 'log'>,
	run_id: string,
	heard: (asked: Asked | null) => void,
): () => void {
	/** Runs of the line below, each with what ends listening to it. */
	const below = new Map<string, () => void>()
	let told: string | null = null
	let isLooking = false
	let isStale = false
	let isOver = false

	const changed = (): void => {
		isStale = true
		if (!isLooking) void lookOn()
	}
	const lookOn = async (): Promise<void> => {
		isLooking = true
		try {
			while (isStale && !isOver) {
				isStale = false
				const run = await find(store, run_id)
				const line = run ? await lineFrom(store, run) : []
				if (isOver) return
				// What came before somebody was listened to is seen by another look, as is what has come since.
				if (listen(line.slice(1)) || isStale) isStale = true
				else tell(questionAt(line))
			}
		} catch (error) {
			log.error({ err: error, run_id }, 'the questions of sub-agents could not be looked at')
		} finally {
			isLooking = false
		}
	}
	/** True where there is somebody new. */
	const listen = (line: RunRecord[]): boolean => {
		const wanted = new Set(line.map((run) => run.run_id))
		const gone = [...below.keys()].filter((id) => !wanted.has(id))
		for (const id of gone) leave(id)
		const fresh = [...wanted].filter((id) => !below.has(id))
		for (const id of fresh) below.set(id, events.subscribe({ run_id: id, types: CHANGES }, changed))
		return fresh.length > 0
	}
	const leave = (id: string): void => {
		below.get(id)?.()
		below.delete(id)
	}
	const tell = (asked: Asked | null): void => {
		const next = asked && asked.run_id !== run_id ? asked : null
		if ((next?.question_id ?? null) === told) return
		told = next?.question_id ?? null
		heard(next)
	}
	const unsubscribe = events.subscribe({ run_id, types: CHANGES }, ({ event: { payload } }) => {
		if (payload.waits_for !== undefined || below.size > 0) changed()
	})
	changed()
	return () => {
		isOver = true
		unsubscribe()
		for (const id of below.keys()) leave(id)
	}
}

/** Each comes once the record of its run says the same; see `settled`. */
const CHANGES = ['run.paused', 'run.resumed', 'run.completed', 'run.failed', 'run.stopped']

/** The run and, one after the other, the sub-agents that are waited for. Not other runs: they have somebody of their own to ask. */
async function lineFrom(store: Store, run: RunRecord): Promise<RunRecord[]> {
	const line = [run]
	let { run_id, waits_for } = run
	while (waits_for !== undefined && line.length < LINE_LIMIT) {
		await settled(waits_for)
		const next = (await store.get<RunRecord>(keys.run(run.agent_uid, waits_for)))?.value
		if (!next || isEnded(next.status) || next.parent?.run_id !== run_id) break
		line.push(next)
		;({ run_id, waits_for } = next)
	}
	return line
}

function questionAt(line: RunRecord[]): Asked | null {
	const last = line.at(-1)
	return last?.question ? { ...last.question, run_id: last.run_id } : null
}

async function find(store: Store, run_id: string): Promise<RunRecord | undefined> {
	try {
		await settled(run_id)
		return await getRun(store, run_id)
	} catch (error) {
		if (isFault(error, 'not_found')) return undefined
		throw error
	}
}
