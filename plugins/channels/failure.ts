import { readThrown } from './dialogue/thrown.ts'

/** Why a connection failed, for operators. */
export interface Failure {
	message: string
	/** Automatic retries cannot succeed. */
	refused: boolean
	/** How long the platform asked not to be called, in milliseconds. */
	retry_after_ms: number
}

const MESSAGE_LIMIT = 500

/** Accepts anything that was thrown. The token is removed, however short it is. */
export function failureOf(thrown: unknown, token: string): Failure {
	const { code, message, retry_after_ms } = readThrown(thrown)
	return {
		message: message.replaceAll(token, '[token]').slice(0, MESSAGE_LIMIT),
		refused: code === 'refused',
		retry_after_ms,
	}
}
