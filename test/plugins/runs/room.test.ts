/** When another run of an agent may wait, and how often its conversations are read to know that. */
import t from 'tap'
import type { RoomDeps } from '../../../plugins/runs/room.ts'
import { openRoom } from '../../../plugins/runs/room.ts'

/** `conversations`: how many runs each has. */
function open(limit: number, conversations: number[], placeless = 0) {
	const state = { conversations, placeless, counts: 0 }
	const list = async function* (): AsyncGenerator<unknown> {
		state.counts++
		for (const length of state.conversations) yield { value: { runs: Array.from({ length }, String) } }
	}
	const deps = {
		store: { list },
		queue: { waiting: () => 0 },
		pool: { places: { waiting: () => state.placeless } },
		config: { max_waiting: 100, max_waiting_per_agent: limit, max_waiting_total: 1_000 },
	} as unknown as RoomDeps
	return { state, check: openRoom(deps) }
}

void t.test('runs that wait for a thread are counted once, until they could reach the limit', async (t) => {
	const { state, check } = open(10, [], 1)
	for (; state.placeless < 10; state.placeless++) await check('ada', 0, false)
	t.equal(state.counts, 1)
	await t.rejects(check('ada', 0, false), { code: 'queue_full', message: /^10 runs of this agent wait already/ })
	state.placeless = 9
	await check('ada', 0, false)
})

void t.test('runs behind others of their conversation count, the owed ones too', async (t) => {
	const { state, check } = open(4, [1])
	const start = async (isExempt: boolean): Promise<void> => {
		await check('ada', 1, isExempt)
		state.conversations = [(state.conversations[0] ?? 0) + 1]
	}
	await start(false)
	await start(true)
	await start(true)
	await start(false)
	await t.rejects(start(false), { code: 'queue_full' })
	await start(true) // it is not refused
	await t.rejects(start(false), { code: 'queue_full', message: /^5 runs/ })
	state.conversations = [3]
	await start(false)
})

void t.test('a run that need not wait reads nothing', async (t) => {
	const { state, check } = open(1, [9, 9])
	await check('ada', 0, false)
	t.equal(state.counts, 0)
})
