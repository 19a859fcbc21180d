import { readThrown } from './dialogue/thrown.ts'

/** Why a connection failed, for operators. */
export interface Failure {
	message: string
	/** Trying again by itself is no use. */
	refused: boolean
	/** The platform asked to be left alone for so long, in milliseconds. */
	retry_after_ms: number
}

const MESSAGE_LIMIT = 500

/** Whatever was thrown. The token does not show, however short it is. */
export function failureOf(thrown: unknown, token: string): Failure {
	const { code, message, retry_after_ms } = readThrown(thrown)
	return {
		message: message.replaceAll(token, '[token]').slice(0, MESSAGE_LIMIT),
		refused: code === 'refused',
		retry_after_ms,
	}
}
