import { messageOf } from '../../core/errors.ts'

/** What an adapter threw, as far as it can be read. */
export interface Failure {
	message: string
	/** Trying again by itself is no use. */
	refused: boolean
	/** The platform asked to be left alone for so long, in milliseconds. */
	retry_after_ms: number
}

const MESSAGE_LIMIT = 500

/** Whatever was thrown, also what throws when it is looked at. The token does not show, however short it is. */
export function failureOf(thrown: unknown, token: string): Failure {
	try {
		const { code, retry_after_ms } = Object(thrown) as Record<string, unknown>
		const text = String(messageOf(thrown)).toWellFormed().replaceAll(token, '[token]')
		return {
			message: (text || 'no reason was given').slice(0, MESSAGE_LIMIT),
			refused: code === 'refused',
			retry_after_ms: typeof retry_after_ms === 'number' && retry_after_ms > 0 ? retry_after_ms : 0,
		}
	} catch {
		return { message: 'what was thrown cannot be read', refused: false, retry_after_ms: 0 }
	}
}
