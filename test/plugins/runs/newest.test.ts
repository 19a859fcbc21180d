/** An unfinished run is found at once, however many runs came after it. */
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { newId } from '../../../core/util/ids.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { startGateway } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

/** More than one page looks at. */
const LATER = 5_001

void t.test('a paused run with many later ones is on the first page', async (t) => {
	const gateway = await startGateway({
		config: 'plugins: {lender: true}\n',
		files: {
			'plugins/lender/index.js': "export default { name: 'lender', start: (ctx) => { globalThis.newest = ctx } }",
		},
	})
	t.teardown(() => gateway.stop())
	const { store } = (globalThis as unknown as { newest: Context }).newest
	for (const name of ['ada', 'bob']) await gateway.request('POST', '/v1/agents', { body: { name } })
	const ask = '/tool ask {"question": "Which?"}'
	const paused: string[] = []
	for (const [agent, conversation] of [
		['ada', 'one'],
		['bob', 'two'],
		['ada', 'three'],
	] as const) {
		const { body } = await gateway.request('POST', `/v1/agents/${agent}/runs`, { body: { prompt: ask, conversation } })
		paused.unshift(body.run_id)
		await eventually(async () => (await gateway.request('GET', `/v1/runs/${body.run_id}`)).body.status === 'paused')
	}
	// Entries without a run are looked at as runs are.
	const later = Array.from({ length: LATER }, () => newId())
	await Promise.all(later.map((id) => store.put(keys.index(id), { agent: 'ada', uid: 'gone' })))

	const list = async (query: string): Promise<{ ids: string[]; next: string | null }> => {
		const { body } = await gateway.request('GET', `/v1/runs?${query}`)
		return { ids: body.runs.map(({ run_id }: { run_id: string }) => run_id), next: body.next_cursor }
	}
	t.strictSame(await list('status=paused'), { ids: paused, next: null })
	const first = await list('status=paused&limit=2')
	t.strictSame(first, { ids: paused.slice(0, 2), next: paused[1] })
	t.strictSame(await list(`status=paused&limit=2&cursor=${first.next}`), { ids: paused.slice(2), next: null })
	t.strictSame(await list('status=queued'), { ids: [], next: null })
	t.strictSame((await list('status=completed')).ids, [], 'of others one page looks at a part only')
	t.type((await list('status=completed')).next, 'string')
})
