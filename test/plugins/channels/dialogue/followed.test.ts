/** Runs that chats wait for: one that is not stored yet is not looked up, since it would appear as deleted. */
import { getEventListeners } from 'node:events'
import t from 'tap'
import { followRuns } from '../../../../plugins/channels/dialogue/followed.ts'
import type { FollowedRuns, FollowHooks } from '../../../../plugins/channels/dialogue/followed.ts'
import type { Reply } from '../../../../plugins/channels/dialogue/records.ts'

const hooks: FollowHooks = { due: () => {}, started: () => {}, working: () => {} }
const ctx: Parameters<typeof followRuns>[0] = {
	defer: () => {},
	use: () => {
		throw new Error('nothing is looked up')
	},
}

const reply: Reply = {
	run_id: 'run',
	agent: 'ada',
	agent_uid: 'uid',
	conversation: 'channel:binding',
	channel_id: 'channel',
	chat: { id: 'chat', kind: 'private' },
	reply_to: '1',
	asked: [],
	said: null,
	saying: null,
	preview: null,
}

const stored = (runs: FollowedRuns): boolean[] => Array.from(runs.all(), ({ isStored }) => isStored)

void t.test('a run is not stored before its start has settled', async (t) => {
	const runs = followRuns(ctx, hooks)
	await runs.start(async (_listener, follow) => {
		follow(reply)
		await Promise.resolve()
		t.strictSame(stored(runs), [false])
	})
	t.strictSame(stored(runs), [true])
})

void t.test('a run that could not be stored is not followed', async (t) => {
	const runs = followRuns(ctx, hooks)
	const refused = runs.start((_listener, follow) => {
		follow(reply)
		return Promise.reject(new Error('the disk is full'))
	})
	await t.rejects(refused, /the disk is full/)
	t.strictSame(stored(runs), [])
})

void t.test('waiting for an idle conversation leaves no listener on the signal', async (t) => {
	const runs = followRuns(ctx, hooks)
	await runs.start(async (_listener, follow) => follow(reply))
	const { signal } = new AbortController()
	const idle = runs.idle(reply, signal)
	t.equal(getEventListeners(signal, 'abort').length, 1)
	for (const run of runs.all()) runs.ended(run)
	await idle
	t.equal(getEventListeners(signal, 'abort').length, 0)

	const leaving = new AbortController()
	await runs.start(async (_listener, follow) => follow({ ...reply, run_id: 'next' }))
	const left = runs.idle(reply, leaving.signal)
	leaving.abort()
	await left
})
