/** Leftovers of channels after a crash, and expired records: the next start removes them. */
import { join } from 'node:path'
import t from 'tap'
import { openLog } from '../../../core/log/log.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Store } from '../../../core/store/ports.ts'
import { keys, scopeOf } from '../../../plugins/channels/keys.ts'
import { makeHome, startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { addChannel, codeFor, loopFiles, openLoop } from '../../support/loop.ts'
import { assertError } from '../../support/error-response.ts'
import { eventually } from '../../support/wait.ts'

const loop = openLoop()

/** A route that returns whether a channel has pairing codes. */
const look = `export default {
	name: 'look',
	http(server, ctx) {
		server.route({
			method: 'GET',
			path: '/v1/look/codes/{channel}',
			handler: async ({ params }) => ({
				isThere: (await ctx.store.get(['channel:' + params.channel, 'codes'])) !== undefined,
			}),
		})
	},
}`

void t.test('a start completes interrupted deletions, and removes unfinished channels and expired codes', async (t) => {
	const files = { ...loopFiles(), 'plugins/look/index.js': look }
	const home = makeHome({ config: 'plugins: {loop: true, look: true}\n', files })
	const first = await startGateway({ home })
	const [kept, halfGone] = [await addChannel(first, 'kept-token'), await addChannel(first, 'gone-token')]
	for (const name of ['ada', 'bob']) await first.request('POST', '/v1/agents', { body: { name } })
	for (const [agent_id, channel_id, external_chat_id] of [
		['ada', kept, 'one'],
		['bob', kept, 'two'],
		['bob', halfGone, 'three'],
	])
		await first.request('POST', '/v1/channels/pair', { body: { agent_id, channel_id, external_chat_id } })
	const pairing_code = await codeFor(loop, await loop.connected('kept-token'), 'later')
	await first.stop()

	const halfMade = '01a1ff6d-0e00-7000-9bfd-9ba6b7dc2040'
	await inStore(home, async (store) => {
		// Its deletion was interrupted.
		await change(store, keys.channel(halfGone), (record) => ({ ...record, deleting: true }))
		await change(store, keys.ledger(halfGone), (ledger) => ({ ...ledger, closed: true }))
		// Its creation was interrupted, long ago.
		await change(store, keys.index, (list: Answer) => [
			...list,
			{ id: halfMade, created_at: '2020-01-01T00:00:00.000Z' },
		])
		// As if bob had been deleted and created again without the gateway's notice.
		await change(store, ['agents', 'bob'], (agent) => ({ ...agent, uid: 'another' }))
		await change(store, keys.codes(kept), (codes: Answer) =>
			codes.map((code: Answer) => ({ ...code, expires_at: new Date().toISOString() })),
		)
	})
	const second = await startGateway({ home })
	const { events } = await eventually(
		async () => (await second.request('GET', '/v1/audit?event_type=channel.deleted')).body,
		(page) => page.events.length > 0,
	)
	t.match(events, [{ payload: { channel_id: halfGone, type: 'loop' } }])
	t.strictSame(
		(await second.request('GET', '/v1/channels')).body.channels.map((one: Answer) => one.id),
		[kept],
	)
	const { bindings } = (await second.request('GET', `/v1/channels/${kept}/bindings`)).body
	t.match(bindings, [{ agent_id: 'ada' }])
	t.equal(bindings.length, 1)
	assertError(t, await second.request('POST', '/v1/channels/pair', { body: { pairing_code, agent_id: 'ada' } }), {
		status: 400,
		code: 'pairing_invalid',
	})
	// Removed last, in the background.
	await eventually(
		async () => (await second.request('GET', `/v1/look/codes/${kept}`)).body,
		({ isThere }) => !isThere,
	)
	await second.stop()

	await inStore(home, async (store) => {
		t.strictSame(
			(await store.get<Answer[]>(keys.index))?.value.map((one) => one.id),
			[kept],
		)
		t.strictSame(await keysOf(store, scopeOf(halfGone)), [], 'nothing is left of it')
		t.strictSame(await keysOf(store, scopeOf(kept), 'bound'), ['one'])
		t.equal((await keysOf(store, scopeOf(kept), 'binding')).length, 1)
		t.strictSame((await store.get(keys.ledger(kept)))?.value, { bindings: 1 })
		t.equal(await store.get(keys.codes(kept)), undefined)
	})
})

async function inStore(home: string, work: (store: Store) => Promise<void>): Promise<void> {
	await using engine = await openLmdb({ path: join(home, 'data'), log: openLog({ level: 'silent', format: 'json' }) })
	await work(engine.store)
}

async function change(store: Store, key: (typeof keys)['index'], to: (value: Answer) => unknown): Promise<void> {
	await store.put(key, to((await store.get<Answer>(key))?.value))
}

async function keysOf(store: Store, ...prefix: [string, ...string[]]): Promise<string[]> {
	const found: string[] = []
	for await (const { key } of store.list(prefix)) found.push(key.at(-1) ?? '')
	return found
}
