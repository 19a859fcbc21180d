/** Limits of waiting runs, and how often they require reading the conversations of an agent. */
import t from 'tap'
import { causedBy } from '../../../core/util/context.ts'
import type { Actor } from '../../../core/util/context.ts'
import type { QueueLimitsDeps } from '../../../plugins/runs/queue-limits.ts'
import { openQueueLimits } from '../../../plugins/runs/queue-limits.ts'
import { callerOf, waitingByCaller } from '../../../plugins/runs/waiting-by-caller.ts'

const byPerson = { trigger: 'api' }

/** `conversations`: the number of runs of each; `placeless`: runs that wait for a thread. */
function open(limit: number, conversations: number[], placeless = 0) {
	const state = { conversations, placeless, queued: 0, reads: 0 }
	const list = async function* (): AsyncGenerator<unknown> {
		state.reads++
		for (const length of state.conversations) yield { value: { runs: Array.from({ length }, String) } }
	}
	const deps = {
		store: { list },
		queue: { waiting: () => state.queued },
		pool: { places: { waiting: () => state.placeless } },
		config: { max_waiting: 100, max_waiting_per_agent: limit, max_waiting_total: 1_000 },
	} as unknown as QueueLimitsDeps
	return { state, check: openQueueLimits(deps), waiting: waitingByCaller(deps) }
}

void t.test('runs that wait for a thread need one read until they can reach the limit', async (t) => {
	const { state, check } = open(10, [], 1)
	for (; state.placeless < 10; state.placeless++) await check('ada', 0, byPerson)
	t.equal(state.reads, 1)
	await t.rejects(check('ada', 0, byPerson), { code: 'queue_full', message: /^10 runs of this agent wait already/ })
	state.placeless = 9
	await check('ada', 0, byPerson)
})

void t.test('queued runs of a conversation count, exempt ones too', async (t) => {
	const { state, check } = open(4, [1])
	const start = async (isExempt: boolean): Promise<void> => {
		await check('ada', 1, isExempt ? { ...byPerson, parent: { run_id: 'r', depth: 1 } } : byPerson)
		state.conversations = [(state.conversations[0] ?? 0) + 1]
	}
	await start(false)
	await start(true)
	await start(true)
	await start(false)
	await t.rejects(start(false), { code: 'queue_full' })
	await start(true) // an exempt run is accepted
	await t.rejects(start(false), { code: 'queue_full', message: /^5 runs/ })
	state.conversations = [3]
	await start(false)
})

void t.test('a run that need not wait causes no read', async (t) => {
	const { state, check } = open(1, [9, 9])
	await check('ada', 0, byPerson)
	t.equal(state.reads, 0)
})

void t.test('webhook deliveries and heartbeats leave a quarter of the limits to people', async (t) => {
	const { state, check } = open(10, [], 7)
	for (const trigger of ['webhook', 'heartbeat']) {
		state.placeless = 7
		await check('ada', 0, { trigger })
		state.placeless = 8
		await t.rejects(check('ada', 0, { trigger }), { code: 'queue_full', message: /^8 runs of this agent/ })
		await check('ada', 0, byPerson)
		state.queued = 750
		await t.rejects(check('ada', 0, { trigger }), { code: 'queue_full', message: /^750 runs of all agents/ })
		state.queued = 0
	}
})

void t.test('a caller may have as many waiting runs as others have places left', async (t) => {
	const { check, waiting } = open(10_000, [])
	const start = (id: string) => causedBy({ actor: { kind: 'token', id } }, () => check('ada', 0, byPerson))
	const hold = (id: string, count: number): void => {
		for (let held = 0; held < count; held++) waiting.add(`token ${id}`)
	}
	hold('first', 500)
	await t.rejects(start('first'), {
		code: 'queue_full',
		message: /^500 runs of this caller wait for a thread already, and the last 500 places are for others/,
	})
	hold('second', 249)
	await start('second')
	hold('second', 1)
	await t.rejects(start('second'), { code: 'queue_full' })
	await start('third')
	await check('bob', 0, byPerson)

	// Sub-agents are not refused.
	hold('first', 1_000)
	t.equal(waiting.total, 750, 'no more than half of the limit counts')
	await start('third')
	for (let held = 1_500; held > 249; held--) waiting.remove('token first')
	t.equal(waiting.total, 499)
	await start('first')
})

void t.test('the caller of a run is whoever started it or its parent, or its agent', (t) => {
	const of = (actor?: Actor, trigger = 'api') => callerOf({ actor, trigger, agent_uid: 'ada' })
	t.equal(of({ kind: 'token', id: '1', label: 'bot' }), 'token 1')
	t.equal(
		callerOf({ caller: 'token 1', actor: { kind: 'agent', id: 'name' }, agent_uid: 'ada' }),
		'token 1',
		'a sub-agent',
	)
	t.equal(of({ kind: 'local' }), 'local ')
	t.equal(of({ kind: 'channel', id: 'c', label: 'person' }, 'chat_a'), 'channel c')
	for (const caller of [
		of(),
		of({ kind: 'agent', id: 'name' }),
		of({ kind: 'gateway' }, 'heartbeat'),
		of({ kind: 'webhook', id: 'slug' }, 'webhook'),
	])
		t.equal(caller, 'agent ada')
	t.end()
})
