/** Agents of version 0.1.0 have no liveness record; the first start creates it. */
import { join } from 'node:path'
import t from 'tap'
import { openLog } from '../../../core/log/log.ts'
import { agentScope, livenessKey } from '../../../core/store/agent-scope.ts'
import { openLmdb } from '../../../core/store/lmdb/open.ts'
import type { Store } from '../../../core/store/ports.ts'
import { testFolder } from '../../support/folder.ts'
import { markFormat } from '../../support/format.ts'
import { startGateway } from '../../support/gateway.ts'
import type { TestGateway } from '../../support/gateway.ts'

const home = testFolder(t)

async function withGateway<T>(work: (gateway: TestGateway) => Promise<T>): Promise<T> {
	const gateway = await startGateway({ home })
	try {
		return await work(gateway)
	} finally {
		await gateway.stop()
	}
}

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
	await using engine = await openLmdb({
		path: join(home, 'data'),
		log: openLog({ level: 'silent', format: 'json' }),
	})
	return await work(engine.store) // before it is closed
}

void t.test('an upgrade keeps the agents of version 0.1.0 and completes their interrupted deletions', async (t) => {
	await withGateway(async ({ request }) => {
		for (const name of ['ada', 'bob', 'cleo'])
			t.equal((await request('POST', '/v1/agents', { body: { name } })).status, 201)
		await request('POST', '/v1/agents/bob/heartbeats', { body: { every: '1h', prompt: 'Hello.' } })
	})
	const bob = await withStore(async (store) => {
		const uidOf = async (name: string): Promise<string> =>
			(await store.get<{ uid: string }>(['agents', name]))?.value.uid ?? ''
		const uid = await uidOf('bob')
		// `cleo` keeps its record, as if a version between the two had created it.
		for (const name of ['ada', 'bob']) await store.delete(livenessKey(await uidOf(name)))
		const entry = await store.get<object>(['agents', 'bob'])
		await store.put(['agents', 'bob'], { ...entry?.value, deleting: true })
		t.ok((await Array.fromAsync(store.list([agentScope(uid)]))).length > 0)
		return uid
	})
	await markFormat(join(home, 'data'), 1)
	await withGateway(async ({ request }) => {
		for (const name of ['ada', 'cleo']) {
			const reply = await request('POST', `/v1/agents/${name}/heartbeats`, { body: { every: '1h', prompt: 'Hello.' } })
			t.equal(reply.status, 200, name)
		}
		t.equal((await request('GET', '/v1/agents/bob')).status, 404)
	})
	t.strictSame(await withStore((store) => Array.fromAsync(store.list([agentScope(bob)]))), [])
})
