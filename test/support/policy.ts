import type { CallPolicy } from '../../plugins/runs/call-policy.ts'

/** Allows every call. */
export const noPolicy: CallPolicy = {
	ruling: () => 'allow',
	approved: () => undefined,
	isPermanent: () => Promise.resolve(false),
}
