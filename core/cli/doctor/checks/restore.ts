import { isHalfPlaced } from '../../../backup/place.ts'
import { error } from '../contract.ts'
import type { Check } from '../contract.ts'

export const restoreChecks: Check[] = [
	{
		id: 'restore.finished',
		about: 'whether a restore was interrupted',
		async run({ home }) {
			if (!isHalfPlaced(home)) return []
			return error('a restore was interrupted', 'restore again, which resumes from there: svc restore FILE')
		},
	},
]
