import { livenessKey } from '../../core/store/agent-scope.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { AgentRecord } from './contract.ts'

/** Creates the liveness records, which version 0.1.0 did not have: every write for an agent expects one. */
const livenessRecords: Migration = {
	name: 'agents-liveness-records',
	about: 'agents',
	format: 2,
	places: () => [{ prefix: ['agents'] }],
	async convert(entries, store) {
		const ops: Op[] = []
		for (const { value } of entries as Entry<AgentRecord>[]) {
			const key = livenessKey(value.uid)
			if (!value.deleting && !(await store.get(key))) ops.push({ key, value: true, expect: null })
		}
		return ops
	},
}

export default [livenessRecords]
