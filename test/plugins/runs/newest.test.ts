/** Lists of unfinished runs read a separate index, not all runs. */
import t from 'tap'
import { newId } from '../../../core/util/ids.ts'
import { keys } from '../../../plugins/runs/keys.ts'
import { contextProbe } from '../../support/context-probe.ts'
import { startGateway } from '../../support/gateway.ts'
import { eventually } from '../../support/wait.ts'

/** More runs than the gateway reads for one page. */
const LATER = 5_001

void t.test('a paused run with many later ones is on the first page', async (t) => {
	const probe = contextProbe()
	const gateway = await startGateway({ config: 'plugins: {probe: true}\n', files: probe.files })
	t.teardown(() => gateway.stop())
	const { store } = probe.context()
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
	// The gateway reads entries of missing runs as it reads others.
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
	t.strictSame((await list('status=completed')).ids, [], 'a page of completed runs reads only part of the index')
	t.type((await list('status=completed')).next, 'string')
})
