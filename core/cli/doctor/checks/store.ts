import { error, ok } from '../contract.ts'
import type { Check } from '../contract.ts'
import { troubleOf } from '../gateway.ts'

export const storeChecks: Check[] = [
	{
		id: 'store.intact',
		about: 'whether the data file is intact',
		async run(context) {
			if ((await context.config()).store.url !== null) return []
			const verdict = await context.storeVerdict()
			if (!verdict) return ok('there is no data yet')
			const { damage, refused, complete, pages, records } = verdict
			const { path } = (await context.config()).store
			if (damage !== null)
				return error(
					`the data file in ${path} is damaged: ${damage}`,
					`stop the gateway, move the folder ${path} away and restore a backup: svc restore FILE`,
				)
			if (refused !== null)
				return error(
					`the data file in ${path} cannot be read: ${refused}`,
					'fix what the message names, and what native.lmdb reports; if that does not help, restore a backup: svc restore FILE',
				)
			return ok(
				complete
					? `the data file is intact: ${records} records on ${pages} pages`
					: `the data file is large; ${pages} of its pages were checked, and are intact`,
			)
		},
	},
	{
		id: 'store.writes',
		about: 'whether the store accepts writes',
		async run(context) {
			const gateway = await context.gateway()
			if (!gateway) return []
			const trouble = await troubleOf(gateway, 'store')
			if (trouble === null) return ok('the store accepts writes')
			// The message ends with what to do: a full disk needs no restart, a failed write does.
			return error(`the store ${trouble}`, 'follow the message, then check again: svc doctor --only store.writes')
		},
	},
]
