/** The time to read a run's context from the store and fit it into the window, by length of the conversation. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import type { LogEntry } from '../../core/store/ports.ts'
import { newId, now } from '../../core/util/ids.ts'
import { composeContext } from '../../plugins/runs/context.ts'
import type { RunRecord } from '../../plugins/runs/contract.ts'
import { keys } from '../../plugins/runs/keys.ts'
import type { Effort } from './effort.ts'
import { median } from './statistics.ts'
import type { Figure } from './table.ts'

const TURNS = 2_000
const SHORT = 200
const RESULT = 'a line of the ledger with some figures 12.50, '.repeat(30)

/** For a window of 8,192 tokens; each turn has a call with a result. */
export async function context({ single }: Effort): Promise<Figure[]> {
	const path = mkdtempSync(join(tmpdir(), 'svc-bench-'))
	try {
		await using engine = await openLmdb({ path })
		const timesOf = async (uid: string, turns: number): Promise<number[]> => {
			for (let turn = 0; turn < turns; turn++) await addTurn(engine, uid)
			const times: number[] = []
			// Adds a turn each time, so that the newest one is not cached.
			for (let at = 0; at < single + 10; at++) {
				const run_id = await addTurn(engine, uid)
				const began = performance.now()
				await composeContext(
					{ store: engine.store, events: { journal: (run: string) => engine.log.journal(run) } as never },
					{
						run: { agent_uid: uid, conversation: 'c', run_id },
						config: {},
						models: [{ provider: 'p', kind: 'openai', model: 'm', context_window: 8_192, timeout_ms: 1_000 }],
						system: 'You are Ada.',
						tools: [],
						prompt: 'And now?',
					},
				)
				if (at >= 10) times.push(performance.now() - began)
			}
			return times
		}
		const short = median(await timesOf('short', SHORT))
		const long = median(await timesOf('long', TURNS))
		return [
			{
				metric: `context of a run after ${TURNS} turns`,
				unit: 'ms',
				ours: long,
				bare: null,
				goal: { of: 'ours', most: 2 },
			},
			{
				metric: `the same, against ${SHORT} turns`,
				unit: 'ms',
				ours: long,
				bare: short,
				goal: { of: 'ratio', most: 1.5 },
			},
		]
	} finally {
		rmSync(path, { recursive: true, force: true })
	}
}

async function addTurn(
	{ store, log }: Pick<Awaited<ReturnType<typeof openLmdb>>, 'store' | 'log'>,
	uid: string,
): Promise<string> {
	const run_id = newId()
	const at = now()
	const usage = { input_tokens: 0, output_tokens: 0 }
	const run: RunRecord = {
		run_id,
		agent: uid,
		agent_uid: uid,
		conversation: 'c',
		status: 'completed',
		trigger: 'api',
		prompt: 'Read the next page for me.',
		created_at: at,
		started_at: at,
		ended_at: at,
		answer: 'The page is read.',
		usage,
		error: null,
		question: null,
		active_ms: 0,
	}
	const answer = { usage, provider: 'p', model: 'm', finish_reason: 'stop' }
	const steps = [
		{
			kind: 'model',
			answer: { ...answer, content: '', tool_calls: [{ id: `c_${run_id}`, name: 'ledger.page', arguments: '{}' }] },
		},
		{ kind: 'tool', call_id: `c_${run_id}`, ok: true, content: RESULT },
		{ kind: 'model', answer: { ...answer, content: run.answer, tool_calls: [] } },
	]
	const entries = steps.map((step, place): LogEntry => ({
		event: {
			event_id: newId(),
			timestamp: at,
			agent_id: uid,
			run_id,
			sequence: place + 1,
			event_type: 'x',
			payload: {},
		},
		step,
	}))
	await Promise.all([
		log.append(run_id, 0, entries),
		store.put(keys.run(uid, run_id), run),
		store.put(keys.turn(uid, 'c', run_id), {}),
	])
	return run_id
}
