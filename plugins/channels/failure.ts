import { readThrown } from './dialogue/thrown.ts'

const MESSAGE_LIMIT = 500

/** Why a connection failed, for operators. Accepts anything that was thrown. The token is removed, however short it is. */
export function failureOf(thrown: unknown, token: string) {
	const { code, message, retry_after_ms } = readThrown(thrown)
	return {
		message: message.replaceAll(token, '[token]').slice(0, MESSAGE_LIMIT),
		/** Automatic retries cannot succeed. */
		refused: code === 'refused',
		/** How long the platform asked not to be called. */
		retry_after_ms,
	}
}
