/**
 * The question that a run waits for: its own, or that of a sub-agent it waits for, at any depth. The records are the
 * source; events only trigger reading them again. So a crash loses nothing.
 */
import type { Context } from '../../core/plugin.ts'
import type { Store } from '../../core/store/ports.ts'
import type { OpenQuestion, RunRecord } from './contract.ts'
import { findRun, readRun } from './records.ts'
import { isEnded } from './run-state.ts'

/** Runs that are searched for the question. */
const TREE_LIMIT = 64

/** As `Runs.asked`. */
export async function openQuestionOf(store: Store, run: RunRecord): Promise<OpenQuestion | null> {
	return questionAt(await treeFrom(store, run))
}

/**
 * Calls `listener` with the open question of the sub-agents that the run waits for, with each later one, and with null when a
 * question closes. The run's own questions are in its events.
 * Stops when the returned function is called. May be called before the run exists. `listener` must not throw.
 */
export function watchOpenQuestion(
	{ store, events, log }: Pick<Context, 'store' | 'events' | 'log'>,
	run_id: string,
	listener: (asked: OpenQuestion | null) => void,
): () => void {
	/** The runs below, each with the function that ends its subscription. */
	const below = new Map<string, () => void>()
	let reported: string | null = null
	let isReading = false
	let isStale = false
	let isStopped = false

	const changed = (): void => {
		isStale = true
		if (!isReading) void readAgain()
	}
	const readAgain = async (): Promise<void> => {
		isReading = true
		try {
			while (isStale && !isStopped) {
				isStale = false
				const run = await findRun(store, run_id)
				const tree = run ? await treeFrom(store, run) : []
				if (isStopped) return
				// A run may have changed before the subscription to its events: so read again after a new one.
				if (subscribeTo(tree.slice(1)) || isStale) isStale = true
				else report(questionAt(tree))
			}
		} catch (error) {
			log.error({ err: error, run_id }, 'the questions of sub-agents could not be read')
		} finally {
			isReading = false
		}
	}
	/** True if one of the runs is new. */
	const subscribeTo = (tree: RunRecord[]): boolean => {
		const wanted = new Set(tree.map((run) => run.run_id))
		const gone = [...below.keys()].filter((id) => !wanted.has(id))
		for (const id of gone) unsubscribeFrom(id)
		const fresh = [...wanted].filter((id) => !below.has(id))
		for (const id of fresh) below.set(id, events.subscribe({ run_id: id, types: CHANGES }, changed))
		return fresh.length > 0
	}
	const unsubscribeFrom = (id: string): void => {
		below.get(id)?.()
		below.delete(id)
	}
	const report = (asked: OpenQuestion | null): void => {
		const next = asked && asked.run_id !== run_id ? asked : null
		if ((next?.question_id ?? null) === reported) return
		reported = next?.question_id ?? null
		listener(next)
	}
	const unsubscribe = events.subscribe({ run_id, types: CHANGES }, ({ event: { payload } }) => {
		if (payload.waits_for !== undefined || below.size > 0) changed()
	})
	changed()
	return () => {
		isStopped = true
		unsubscribe()
		for (const id of below.keys()) unsubscribeFrom(id)
	}
}

/** The run's record has changed before such an event is delivered. */
const CHANGES = ['run.paused', 'run.resumed', 'run.completed', 'run.failed', 'run.stopped']

/** The run and the sub-agents that it waits for, breadth first. Other awaited runs are omitted: their own callers answer them. */
async function treeFrom(store: Store, run: RunRecord): Promise<RunRecord[]> {
	const tree = [run]
	// The loop visits the runs that it adds.
	for (const { agent_uid, run_id, waits_for, waits_for_all } of tree) {
		const awaited = waits_for_all ?? (waits_for === undefined ? [] : [waits_for])
		for (const id of awaited) {
			if (tree.length >= TREE_LIMIT) return tree
			const next = await readRun(store, agent_uid, id)
			if (next && !isEnded(next.status) && next.parent?.run_id === run_id) tree.push(next)
		}
	}
	return tree
}

function questionAt(tree: RunRecord[]): OpenQuestion | null {
	for (const { run_id, question } of tree) if (question) return { ...question, run_id }
	return null
}
