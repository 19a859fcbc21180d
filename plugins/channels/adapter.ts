/**
 * The contract of a channel adapter: one object that connects to a platform, reports incoming messages and sends outgoing
 * ones. The gateway does the rest for every platform: pairing, commands, one run per message even if it is delivered twice,
 * splitting and markup, previews while the agent works, typing indicators, rate limits, retries, reconnecting, status.
 * `skills-examples/matrix-channel` is a complete example; `test/contracts/channel.ts` tests an adapter.
 *
 *     export default {
 *       name: 'my-chat',
 *       needs: ['channels'],
 *       start: (ctx) => ctx.extend('channel', { type: 'my_chat', label: 'My Chat', can: {…}, connect: async (link) => … }),
 *     } satisfies Plugin
 *
 * Terms
 * - channel     a bot account on a platform, with its token
 * - chat        where people talk to the bot: a direct chat, a group, a room
 * - adapter     a `ChannelAdapter`: implements one platform
 * - link        the gateway's side of a connection
 * - connection  the adapter's side: sends messages
 *
 * These are types only, so an adapter has no run-time dependency on this package.
 */
import type Joi from 'joi'
import type { Logger } from '../../core/log/log.ts'

export interface ChannelAdapter<Config extends object = object> {
	/** The `type` of its channels: 1-32 of `a-z 0-9 _`, such as `my_chat`. If two adapters have the same type, the first is used. */
	type: string
	/** Other names for the type in requests. */
	aliases?: readonly string[]
	/** Name of the platform, for people. */
	label: string
	can: Abilities
	/** Validates the adapter's own keys of a channel's `config`; unknown keys are stored unchanged. */
	config?(joi: Joi.Root): Joi.ObjectSchema<Config>
	/**
	 * Keys of `config` that callers without the scope `*` may set. None of them may determine where the connection goes or what
	 * it can reach. Leave out every address, host, port, path and proxy: anyone who sets those gets the operator's bot token. The
	 * gateway's own keys are implied; `api_root` is not allowed.
	 */
	unguarded?: readonly string[]
	/**
	 * Schemes that `config.api_root` may have, such as `['irc', 'ircs']`: 1-16 of them, lower case. Absent: `http` and `https`.
	 * For other schemes the adapter makes the connection itself. Callers without the scope `*` may only use addresses in
	 * `channels.allowed_api_roots`, whatever the scheme.
	 */
	schemes?: readonly string[]
	/**
	 * Connects. Settles once the platform has accepted the token, within 60 s; messages are received from then on. Throws
	 * `link.error('refused', …)` if a person must fix something, such as a wrong token: the gateway then retries only after the
	 * token, the channel or the plugin has changed. After any other error it retries with growing delays.
	 */
	connect(link: Link<Config>): Promise<Connection>
}

/** What the platform accepts. */
export interface Abilities {
	/** Best first. If the platform rejects one (`format`), the next one is used. The last should be `plain`. */
	formats: readonly Format[]
	/** How long a typing indicator is shown, in milliseconds. Absent: the platform has none. */
	typing_ms?: number
	/**
	 * How an unfinished answer is shown, by kind of chat. `draft`: by `Connection.draft`, which sends no message. `edit`: as a
	 * message that `Connection.edit` updates. Absent: no preview.
	 */
	preview?: Partial<Record<ChatKind, 'draft' | 'edit'>>
	/**
	 * Minimum milliseconds between two messages or edits: in one chat (default 1,000), in a group (default `chat_ms`), and in
	 * all chats together (default 35).
	 */
	pace?: { chat_ms?: number; group_ms?: number; channel_ms?: number }
	/**
	 * The connection has `sendFile`, for files of at most `max_bytes`. Absent: it sends no files, and users get the file's name
	 * and how to get it.
	 */
	files?: { max_bytes: number }
}

/**
 * `markdown`: as models write it (CommonMark with tables and strikethrough). `html`: only `b i s code pre a blockquote`,
 * with `&`, `<` and `>` escaped, `pre` around `<code class="language-…">`, and lines that end with `\n`. `plain`: text.
 */
export type Markup = 'markdown' | 'html' | 'plain'

export interface Format {
	markup: Markup
	/** Limit of one message in UTF-16 code units of its text; tags of `html` do not count. */
	max_length: number
	/**
	 * Limit of one message in bytes of its text as UTF-8, markup included; 256 or more. Absent: only `max_length` applies.
	 * The gateway keeps both limits, and splits neither a character nor a code block.
	 */
	max_bytes?: number
}

/** `private`: a chat between the bot and one person. */
export type ChatKind = 'private' | 'group'

/** Ids are the platform's permanent ids, never names that users can change. 1-128 printable ASCII characters. */
export interface ChatRef {
	id: string
	/** A topic or thread of the chat with its own conversation. */
	thread_id?: string
}

export interface IncomingMessage {
	/** Unique in its chat, and the same when the platform delivers the message again. */
	id: string
	chat: ChatRef & {
		kind: ChatKind
		/** Ids of the containers of the chat, such as its server, innermost first. Their binding applies if the chat has none. */
		within?: readonly string[]
	}
	sender: { id: string; name?: string }
	/** Without a mention that only addresses the bot. '' if there is no text. A command begins with `/`. */
	text: string
	/** Whether the message is for the bot: in a private chat, a mention of the bot, or a reply to it. */
	addressed: boolean
	/** Describes content other than text, such as `a voice message`. For models; used only without `attachments`. */
	attachment?: string
	/** Attached files that `Connection.load` can load. Only the first 10 are used. */
	attachments?: readonly IncomingFile[]
	/** The message to which this one replies, if the platform delivers its text. Commands and answers are read from `text` only. */
	quoted?: QuotedMessage
	/**
	 * The position in the platform's feed after this message, at most 4,096 characters. `link.cursor` returns the newest
	 * accepted one. If one response contains several messages, only the last one has the position after the response. The
	 * others have the position before it, so that all are delivered again if one cannot be accepted.
	 */
	cursor?: string
}

/** An earlier message to which a person replies. */
export interface QuotedMessage {
	/**
	 * The text of the message, or the part that the person selected. For a message without text, a description such as
	 * `[a photo]`. The model sees the first 500 characters, or 200 with `own`. An empty quote is ignored.
	 */
	text: string
	/** Name of its author, if known. */
	sender?: string | null
	/** Whether the bot wrote it. The conversation already contains its text, so the model sees less of the quote. */
	own?: boolean
}

/** An image, a file or a recording attached to a message. */
export interface IncomingFile {
	/** A description such as `a photo`: for the model, if the file cannot be loaded. */
	what: string
	name?: string
	/** The media type according to the platform. A type detected from the bytes takes precedence. */
	media_type?: string
	/** In bytes, if the platform provides it. A file above the gateway's limit is not loaded. */
	size?: number
	/** Length of a recording. */
	seconds?: number
	/**
	 * The argument of `Connection.load`, such as an id or an address; 1-4,096 characters. It is stored, so it must not contain
	 * the token.
	 */
	ref: string
}

export interface LoadOptions {
	/** Aborts at the deadline, when the bytes are no longer needed. */
	signal: AbortSignal
	/** Throw as soon as the file is known to be larger. */
	max_bytes: number
}

export interface OutgoingMessage {
	chat: ChatRef & { kind: ChatKind }
	/** Id of the message to reply to. Absent in private chats and after the first part of an answer. */
	reply_to?: string
	/** Id of the previous part, if an answer needs several messages. */
	after?: string
	/** Within the limits of the format, and never empty. */
	text: string
	markup: Markup
	/**
	 * 25 characters of `0-9 a-z`. The same for every attempt to send this message, even if its text has changed. A platform
	 * that supports nonces creates only one message for a nonce.
	 */
	nonce: string
}

/** A file of an answer, sent as a separate message after the text. */
export interface OutgoingFile {
	chat: ChatRef & { kind: ChatKind }
	/** As in `OutgoingMessage`. */
	reply_to?: string
	after?: string
	/** `image`: PNG, JPEG, GIF, WebP, HEIC or AVIF. */
	type: 'image' | 'file' | 'audio'
	/** 1-255 characters: the last part of a path, without control characters and `<>:"|?*`. */
	name: string
	media_type: string
	/** Bytes. */
	size: number
	/** 25 characters of `0-9 a-z`, the same for every attempt to send this file. */
	nonce: string
}

/** The state of a connection. */
export type LinkStatus = 'connected' | 'reconnecting'

/**
 * Codes of errors that an adapter throws. An error without a code means that the outcome is unknown.
 * - `format`   the platform rejected the markup; nothing was sent
 * - `limited`  a rate limit was reached; nothing was sent; set `retry_after_ms`
 * - `failed`   nothing was sent; a retry may succeed
 * - `refused`  nothing was sent, and a retry cannot succeed, for example because the chat was deleted or the bot was blocked. For a wrong
 *              token, pass the error to `Link.lost` first: the message is then sent with the next token
 */
export type ChannelErrorCode = 'format' | 'limited' | 'failed' | 'refused'

export interface ChannelError extends Error {
	code: ChannelErrorCode
	retry_after_ms?: number
}

/** The gateway's side of a connection. */
export interface Link<Config extends object = object> {
	readonly channel_id: string
	/** The bot's token, from the vault. Never log it. */
	readonly token: string
	/** Validated, with defaults. */
	readonly config: Config
	readonly log: Logger
	/** Aborts when the connection must end. `close` is called next, and calls to the link no longer have any effect. */
	readonly signal: AbortSignal
	/** The newest position in the feed, from an accepted message or from `advance`; null if there is none yet. */
	cursor(): Promise<string | null>
	/**
	 * Chats with accepted messages, each with the id of the newest one, for requesting later messages from the platform. At most
	 * 1,000, the most recently active first.
	 */
	chats(): Promise<KnownChat[]>
	/**
	 * Accepts a message. Settles once it is durable, already known, or needs no action: acknowledge it to the platform only
	 * then. Messages are accepted in the order of the calls. If it throws, the message was not accepted: do not acknowledge it,
	 * and call `lost`. An invalid message is skipped and reported to the operator, since it would be invalid again.
	 */
	receive(message: IncomingMessage): Promise<void>
	/**
	 * Sets the position in the feed, once every message before it was accepted: where the feed begins on the very first
	 * connection, and after entries that are not messages. Settles once the position is stored, or at once if one was stored
	 * within the last few seconds, so frequent calls are cheap. Ordered with `receive`.
	 */
	advance(cursor: string): Promise<void>
	/** Reports problems from which the connection recovers by itself. Initially `connected`. `connected` with an `error` means that it works only partly. */
	status(status: LinkStatus, error?: string): void
	/** The connection is lost. The gateway closes it and reconnects after growing delays, but not after a `refused` error. */
	lost(error: unknown): void
	/** Creates an error to throw. Operators read the message, so it should say what to change. */
	error(code: ChannelErrorCode, message: string, more?: { retry_after_ms?: number; cause?: unknown }): ChannelError
}

export interface KnownChat {
	id: string
	/** Id of the newest accepted message of the chat. */
	last_id: string
	/** Id of the newest message that an agent is known to have sent to the chat; absent if there is none. */
	sent_id?: string
	/**
	 * When the chat was bound to its agent, or when the rules about which messages are answered last changed. ISO 8601. Ignore
	 * earlier messages.
	 */
	bound_at: string
}

/**
 * Sends messages and loads files. Methods may be called concurrently for different chats, but not for the same chat, with two
 * exceptions. `typing` and `load` may still be running. So may calls that have timed out: `draft` and a preview's `edit` after
 * 5 s, or 1 s if an answer is due; any other call after 60 s.
 */
export interface Connection {
	/** Name of the bot, for operators, such as `@my_bot`. */
	readonly name?: string
	/** Returns the new message's id. */
	send(message: OutgoingMessage): Promise<{ id: string }>
	/** Required for previews by `edit`. Setting the same text again is not an error. The nonce is that of the edited message. */
	edit?(id: string, message: OutgoingMessage): Promise<void>
	/** Shows text before it is sent, and replaces the text of the previous call. Required for previews by `draft`. */
	draft?(message: OutgoingMessage): Promise<void>
	typing?(chat: ChatRef): Promise<void>
	/**
	 * Returns the bytes of a file by its `IncomingFile.ref`. Required if messages have `attachments`. Called after `receive` has
	 * settled, and again after a restart, so an earlier connection may have received the message. Files of one chat are loaded
	 * one after another, all files of one message within 20 s. If it throws, the model gets a description of the file and the
	 * error's message, which must not contain the token.
	 */
	load?(ref: string, options: LoadOptions): Promise<Uint8Array>
	/**
	 * For platforms without nonces: the current position in the chat, from which `find` searches later. At most 256 characters.
	 * Stored with a message before it is sent.
	 */
	mark?(chat: ChatRef): string | undefined
	/**
	 * Determines whether a message was sent although no response was received. Returns its id, or undefined if it was not sent.
	 * Called before a message is sent again, also after a restart. Without `find` and without nonces, a user may get a message
	 * twice.
	 */
	find?(message: OutgoingMessage, mark: string | undefined): Promise<{ id: string } | undefined>
	/**
	 * Sends a file, and returns the new message's id. Required with `can.files`. Errors have the codes of `send`; after `format`
	 * and `refused` users get a line of text instead of the file. If messages have nonces or `find`, files need the same.
	 */
	sendFile?(file: OutgoingFile, bytes: Uint8Array): Promise<{ id: string }>
	/** Like `find`, for a file. */
	findFile?(file: OutgoingFile, mark: string | undefined): Promise<{ id: string } | undefined>
	/** Releases all resources, within 10 s. Calls in progress may fail. Called once, also after `lost`. */
	close(): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Extensions {
		channel: ChannelAdapter
	}
}

/** A bot that `svc doctor` checks with its platform. */
interface Bot {
	token: string
	/** The `config` of its channel. */
	config: Record<string, unknown>
}

declare module '../../core/cli/doctor/contract.ts' {
	interface DoctorFile {
		/**
		 * Checks a bot, by the `type` of its channel. Returns the problem as a phrase about its token, and the fix; null if there
		 * is no problem.
		 */
		bots?: Readonly<
			Record<string, (bot: Bot, context: CheckContext) => Promise<Pick<Finding, 'message' | 'fix'> | null>>
		>
	}
}
