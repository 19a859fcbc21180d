/** Converts errors of the Bot API to those of an adapter: was the message sent, and can a retry succeed? */
import { GrammyError, HttpError } from 'grammy'
import { messageOf } from '../../core/errors.ts'
import { isUnsent } from '../shared/unsent.ts'
import type { ChannelError, Link, Markup } from '../channels/adapter.ts'

type ErrorContext = Pick<Link, 'error' | 'token'>

/**
 * Converts an error of grammY. The result has no code if it is unknown whether the message was sent. It never contains the token,
 * which is part of every address, neither in its message nor in a `cause`.
 */
export function errorOf(error: unknown, link: ErrorContext, markup: Markup = 'plain'): Error | ChannelError {
	if (isNotThere(error)) return link.error('refused', "the message to edit was deleted, or is not the bot's own")
	if (error instanceof GrammyError) return answered(error, link, markup)
	if (!(error instanceof HttpError)) return error instanceof Error ? error : new Error(messageOf(error))
	const why = sanitized(messageOf(error.error), link)
	return isUnsent(error.error)
		? link.error('failed', `Telegram cannot be reached: ${why}`)
		: new Error(`Telegram did not answer: ${why}`)
}

/** The server answered with an error, such as `400 Bad Request: chat not found`. */
function answered({ error_code, description, parameters }: GrammyError, link: ErrorContext, markup: Markup): Error {
	const described = sanitized(`${error_code} ${description}`, link)
	// A proxy may have answered instead of the server behind it.
	if (error_code === undefined) return new Error('the server returned an answer that the Bot API does not define')
	if (error_code >= 500) return new Error(`Telegram failed: ${described}`)
	if (error_code === 429)
		return link.error('limited', `Telegram limits the rate: ${described}`, {
			retry_after_ms: (Number(parameters.retry_after) || 1) * 1000,
		})
	if (error_code === 401)
		return link.error('refused', `Telegram does not accept the token: ${described}; get one from @BotFather`)
	if (error_code === 413) return link.error('refused', `Telegram does not accept a file of this size: ${described}`)
	if (error_code === 403) return link.error('refused', `the bot may not write there: ${described}`)
	if (parameters.migrate_to_chat_id !== undefined)
		return link.error('refused', `the group became a supergroup: bind chat ${parameters.migrate_to_chat_id} instead`)
	if (error_code === 400 && !CHAT_ERRORS.test(description) && markup !== 'plain')
		return link.error('format', `Telegram does not accept this ${markup}: ${described}`)
	if (error_code === 404 && markup !== 'plain')
		return link.error('format', `the server does not have this method: ${described}`)
	if (error_code === 400) return link.error('refused', `Telegram refused the message: ${described}`)
	return link.error('failed', `Telegram refuses: ${described}`)
}

/** Errors 400 that do not depend on the format. A wrong guess costs one attempt, since plain text then gets the same error. */
const CHAT_ERRORS =
	/chat not found|deactivated|upgraded|kicked|blocked|not a member|no rights|not enough rights|FORBIDDEN|TOPIC_|thread not found|PEER_ID|CHAT_|USER_/i

/** The message already has the requested text. */
export function isUnchanged(error: unknown): boolean {
	return isCode(error, 400) && /message is not modified/i.test(error.description)
}

/** The bot has no editable message with that id. */
export function isNotThere(error: unknown): boolean {
	const texts =
		/message to edit not found|can't be edited|no (?:text|caption) in the message|MESSAGE_ID_INVALID|AUTHOR_REQUIRED/i
	return isCode(error, 400) && texts.test(error.description)
}

/** Telegram accepts the image only as a file, such as a very wide one. */
export function isNoPhoto(error: unknown): boolean {
	return isCode(error, 400) && /PHOTO_|IMAGE_PROCESS_FAILED|wrong (?:file|type)/i.test(error.description)
}

/** Why the bot cannot be connected. */
export function connectionErrorOf(error: unknown, link: ErrorContext): Error | ChannelError {
	return isCode(error, 404)
		? link.error('refused', 'Telegram does not know a bot with this token')
		: errorOf(error, link)
}

export function isCode(error: unknown, code: number): error is GrammyError {
	return error instanceof GrammyError && error.error_code === code
}

const TEXT_LIMIT = 300

/** A server's text, for operators. Replaces the token, since another server might repeat the address of the request. */
function sanitized(text: string, { token }: ErrorContext): string {
	return text
		.replaceAll(token, '…')
		.replace(/\p{Cc}+/gu, ' ')
		.slice(0, TEXT_LIMIT)
}
