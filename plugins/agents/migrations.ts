import { livenessKey } from '../../core/store/agent-scope.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type { Migration } from '../../core/upgrade/migration.ts'
import type { AgentRecord } from './contract.ts'

/** Version 0.1.0 stored none, and everything that is stored for an agent expects it. */
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
