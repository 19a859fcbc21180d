import { agentIn } from '../../core/store/agent-scope.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import { ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { MemoryRecord } from './records.ts'
import { keysOf } from './same-text.ts'
import type { TextRecord } from './same-text.ts'

/** Before format 2, this record stated that the text records of an agent's memories had been made, which happened on first use. */
const MARKER = 'memory-same-ready'

/** Version 0.1.0 stored no text records. Converts newest first: of memories with the same text, the newest one must be found. */
const textsOfMemories: Migration = {
	name: 'memory-texts',
	about: 'memories',
	format: 2,
	places: async function* (store) {
		for await (const place of ofEachAgent(store, ['memory'], [MARKER])) yield { ...place, reverse: true }
	},
	async convert(entries, store) {
		const wanted = new Map<string, Op>()
		const ops: Op[] = []
		for (const { key, value } of entries as Entry<MemoryRecord>[]) {
			if (key[1] === MARKER) ops.push({ key, value: undefined })
			else
				for (const text of keysOf(agentIn(key[0]) ?? '', value.content)) {
					const name = text.join(' ')
					if (!wanted.has(name))
						wanted.set(name, { key: text, value: { id: value.id } satisfies TextRecord, expect: null })
				}
		}
		const missing = await Promise.all(Array.from(wanted.values(), async (op) => ((await store.get(op.key)) ? [] : op)))
		return [...ops, ...missing.flat()]
	},
}

export default [textsOfMemories]
