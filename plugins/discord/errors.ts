/** Converts errors of Discord and discord.js to those of a channel: was the message sent, and can a retry succeed? */
import {
	DiscordAPIError,
	DiscordjsError,
	DiscordjsErrorCodes,
	HTTPError,
	RateLimitError,
	RESTJSONErrorCodes,
} from 'discord.js'
import { messageOf } from '../../core/errors.ts'
import { isUnsent } from '../shared/unsent.ts'
import type { Link } from '../channels/adapter.ts'

type MakeError = Link['error']

/** Discord's gateway ended the connection permanently. */
export class Closed extends Error {
	readonly code: number

	constructor(code: number) {
		super(`Discord's gateway ended the connection (close code ${code})`)
		this.code = code
	}
}

const TOKEN =
	'Discord refused the bot token; create a new one in the developer portal (Bot, Reset Token) and copy it into the secret in the vault'

/** Close codes after which Discord forbids further attempts. */
const closeMessages: Record<number, string> = {
	4004: `${TOKEN} (close code 4004)`,
	4010: 'Discord refused the shard (close code 4010); this is a bug of the gateway: report it',
	4011: 'the bot is in more servers than one connection can serve (close code 4011); split it into several bots',
	4012: 'Discord no longer supports the API version that this gateway uses (close code 4012); update the gateway',
	4013: 'Discord refused the intents as invalid (close code 4013); update the gateway',
	4014: 'Discord refused the intents (close code 4014); switch on "Message Content Intent" in the developer portal (Bot, Privileged Gateway Intents)',
}

const apiMessages: Record<number, string> = {
	[RESTJSONErrorCodes.UnknownChannel]: 'the channel no longer exists, or the bot was removed from its server',
	[RESTJSONErrorCodes.MissingAccess]: 'the bot cannot see the channel; give it "View Channel" there',
	[RESTJSONErrorCodes.CannotSendMessagesToThisUser]: 'the user does not accept direct messages from the bot',
	[RESTJSONErrorCodes.MissingPermissions]:
		'the bot may not write in the channel; give it "Send Messages", in threads "Send Messages in Threads", for files "Attach Files"',
	[RESTJSONErrorCodes.InvalidActionOnArchivedThread]: 'the thread is archived',
}

/** Bad requests that do not depend on the format. */
const PERMANENT = new Set<unknown>([
	RESTJSONErrorCodes.CannotSendAnEmptyMessage,
	RESTJSONErrorCodes.InvalidActionOnArchivedThread,
	RESTJSONErrorCodes.MaximumNumberOfEditsToMessagesOlderThanOneHourReached,
])

/** Converts an error. The result has no code if the outcome of the request is unknown. */
export function errorOf(error: unknown, make: MakeError): Error {
	if (error instanceof Closed) return make('refused', closeMessages[error.code] ?? error.message)
	if (isUnauthorized(error)) return make('refused', TOKEN)
	if (error instanceof RateLimitError) {
		const message = `Discord limits the rate (${error.global ? 'all of the bot' : error.route})`
		return make('limited', message, { retry_after_ms: Math.max(0, Math.ceil(error.retryAfter)) })
	}
	if (error instanceof DiscordAPIError) return apiErrorOf(error, make)
	if (isUnsent(error)) return make('failed', `Discord was not reached: ${messageOf(error)}`)
	if (error instanceof HTTPError && error.status === 413)
		return make('refused', 'Discord does not accept a file of this size')
	if (error instanceof HTTPError) return new Error(`Discord answered with the status ${error.status}`)
	return new Error(messageOf(error), { cause: error })
}

/** The token is invalid or revoked: each further request would count against the address of the gateway. */
export function isUnauthorized(error: unknown): boolean {
	if (error instanceof DiscordAPIError) return error.status === 401
	return error instanceof DiscordjsError && error.code === DiscordjsErrorCodes.TokenInvalid
}

/** The chat does not exist, or the bot lacks the permission. */
export function isGone(error: unknown): boolean {
	return error instanceof DiscordAPIError && [403, 404].includes(error.status) && typeof error.code === 'number'
}

function apiErrorOf(error: DiscordAPIError, make: MakeError): Error {
	const { status, code } = error
	const message = `${apiMessages[Number(code)] ?? messageOf(error)} (Discord: ${status}, ${code})`
	if (status === 413) return make('refused', `Discord does not accept a file of this size there (${message})`)
	// Not from the API itself, but from a proxy, for example.
	if (typeof code !== 'number') return make('failed', `a server in front of Discord answered with the status ${status}`)
	if (PERMANENT.has(code)) return make('refused', message)
	if (status === 400) return make('format', message)
	return isGone(error) ? make('refused', message) : make('failed', message)
}
