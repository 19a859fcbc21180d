import t from 'tap'
import { destinationsOf } from '../../../../plugins/channels/dialogue/destinations.ts'
import type { DialogueDeps } from '../../../../plugins/channels/dialogue/deps.ts'
import type { Destination } from '../../../../plugins/runs/contract.ts'

const ada = { name: 'ada', uid: 'u1' }
const destination: Destination = { deliver: { channel: 'c1', chat: '7' } }

/** Opens a chat that is bound to ada, in a channel with `pending` pending answers. */
function open(pending: number) {
	const deps = {
		ctx: {},
		registry: { named: async () => 'c1', bound: async () => ({ agent: ada }), channel: () => ({ label: 'Loop' }) },
		marks: { kindOf: async () => 'private', within: async () => [] },
		sessions: { current: async () => 'channel:b1' },
		runs: { count: () => pending },
	} as unknown as DialogueDeps
	return destinationsOf(deps, async () => {}).open(ada, destination, 'heartbeat:h1')
}

void t.test('a channel with 5,000 pending answers accepts no more', async (t) => {
	t.match(await open(5_000), { channel_id: 'c1', chat_id: '7', failed: { code: 'queue_full' } })
	const opened = await open(4_999)
	t.equal(opened?.failed, undefined)
	t.match(opened?.place, /sent to a direct chat on Loop/)
	t.match(
		opened?.ops('r1').map(({ key }) => key[1]),
		['channel-reply', 'channel-talk'],
	)
	t.strictSame((await open(5_000))?.ops('r1'), [])
})
