import { join } from 'node:path'
import { agentScope } from '../../core/store/agent-scope.ts'
import { openLmdb } from '../../core/store/lmdb/open.ts'
import { newId, now } from '../../core/util/ids.ts'
import { entry } from '../contracts/store/log.ts'

/** Adds memories of the agent `ada` and events, as version 0.1.0 stored them, in multiples of 100 and 500. */
export async function fillHome(
	home: string,
	{ memories, events }: { memories: number; events: number },
): Promise<void> {
	await using engine = await openLmdb({ path: join(home, 'data') })
	const uid = (await engine.store.get<{ uid: string }>(['agents', 'ada']))?.value.uid ?? ''
	for (let at = 0; at < memories; at += 100)
		await engine.store.commit(
			agentScope(uid),
			Array.from({ length: 100 }, (_, index) => {
				const id = newId()
				const content = `This is fact number ${at + index}, which is true.`
				return { key: [agentScope(uid), 'memory', id], value: { id, content, tags: [], created_at: now() } }
			}),
		)
	for (let at = 0; at < events; at += 500)
		await engine.log.append(
			null,
			0,
			Array.from({ length: 500 }, () => entry(null, 0)),
		)
}
