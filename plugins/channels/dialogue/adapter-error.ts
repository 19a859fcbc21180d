import { messageOf } from '../../../core/errors.ts'
import type { ChannelErrorCode } from '../adapter.ts'

/** A value thrown by an adapter, read defensively. */
export interface AdapterError {
	/** Without one, the outcome of the call is unknown. */
	code?: ChannelErrorCode
	message: string
	/** 0 if the platform requested no delay. */
	retry_after_ms: number
}

export const errorCodes: ReadonlySet<unknown> = new Set<ChannelErrorCode>(['format', 'limited', 'failed', 'refused'])

/** Accepts any thrown value, even an object whose getters throw. */
export function readAdapterError(thrown: unknown): AdapterError {
	try {
		const { code, retry_after_ms } = Object(thrown) as Record<string, unknown>
		const message = String(messageOf(thrown)).toWellFormed() || 'no reason was given'
		const ms = typeof retry_after_ms === 'number' && retry_after_ms > 0 ? retry_after_ms : 0
		return { ...(errorCodes.has(code) && { code: code as ChannelErrorCode }), message, retry_after_ms: ms }
	} catch {
		return { message: 'the thrown value cannot be read', retry_after_ms: 0 }
	}
}
