import { join } from 'node:path'
import t from 'tap'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import { newId } from '../../core/util/ids.ts'
import { copyEngine } from '../../plugins/cluster/copy.ts'
import { testFolder } from '../support/folder.ts'

void t.test('a copy reports its progress, even if several events were written together', async (t) => {
	const folder = testFolder(t)
	await using from = await openLmdb({ path: join(folder, 'from') })
	await using to = await openLmdb({ path: join(folder, 'to') })
	const event = () => ({
		event_id: newId(),
		timestamp: new Date().toISOString(),
		agent_id: 'ada',
		run_id: null,
		sequence: 0,
		event_type: 'agent.created',
		payload: {},
	})
	const appends = Array.from({ length: 1_500 }, () =>
		from.log.append(null, 0, [{ event: event() }, { event: event() }, { event: event() }]),
	)
	await Promise.all(appends)
	const steps: string[] = []
	const copied = await copyEngine({ from, to, signal: new AbortController().signal, step: (what) => steps.push(what) })
	t.equal(copied.events, 4_500)
	t.equal(steps.filter((what) => what.startsWith('events')).length, 4)
})
