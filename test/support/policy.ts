import type { CallPolicy } from '../../plugins/runs/call-policy.ts'

/** Every call may be made. */
export const noPolicy: CallPolicy = {
	ruling: () => 'allow',
	approved: () => undefined,
	isStanding: () => Promise.resolve(false),
}
