import { agentIn } from '../../core/store/agent-scope.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import { ofEachAgent } from '../../core/upgrade/migration.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { MemoryRecord } from './records.ts'
import { keysOf } from './same.ts'
import type { SameRecord } from './same.ts'

/** Until format 2 it said that an agent's memories had the records of their texts, which were made at its first use. */
const MARKER = 'memory-same-ready'

/** Version 0.1.0 stored no records of texts. Newest first: of memories that say the same, the newest one is found. */
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
						wanted.set(name, { key: text, value: { id: value.id } satisfies SameRecord, expect: null })
				}
		}
		const missing = await Promise.all(Array.from(wanted.values(), async (op) => ((await store.get(op.key)) ? [] : op)))
		return [...ops, ...missing.flat()]
	},
}

export default [textsOfMemories]
