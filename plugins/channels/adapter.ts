/**
 * What the author of a channel writes: one object that connects to a platform, reports incoming messages and sends outgoing
 * ones. The gateway does everything else, for every platform: pairing, commands, one run for each message however often it
 * is delivered, splitting and markup, previews while the agent works, typing, pace, retries, reconnecting, status.
 * `skills-examples/matrix-channel` is a complete example; `test/contracts/channel.ts` checks whether yours is right.
 *
 *     export default {
 *       name: 'my-chat',
 *       needs: ['channels'],
 *       start: (ctx) => ctx.extend('channel', { type: 'my_chat', label: 'My Chat', can: {…}, connect: async (link) => … }),
 *     } satisfies Plugin
 *
 * Words
 * - channel     one account of the agent's on a platform: a bot with its token
 * - chat        where people talk to the bot: a direct chat, a group, a room
 * - adapter     this file's `ChannelAdapter`: knows one platform
 * - link        what the gateway gives to a connection
 * - connection  what the adapter returns: sends messages
 *
 * Nothing here is imported at run time, so that an adapter's file needs no package of ours.
 */
import type Joi from 'joi'
import type { Logger } from '../../core/log/log.ts'

export interface ChannelAdapter<Config extends object = object> {
	/** The `type` of its channels: 1-32 of `a-z 0-9 _`, such as `my_chat`. Of two adapters with one type the first counts. */
	type: string
	/** Further names that requests may use for it. */
	aliases?: readonly string[]
	/** What people call the platform. */
	label: string
	can: Abilities
	/** Checks the keys of a channel's `config` that it knows; others are kept as they are. */
	config?(joi: Joi.Root): Joi.ObjectSchema<Config>
	/**
	 * Keys of `config` that callers without the scope `*` may set too; none of them says where the connection goes or what it
	 * can reach. Leave out every address, host, port, path and proxy: anyone who sets those gets the operator's bot token. The
	 * gateway's own keys need not be here, and `api_root` cannot be.
	 */
	unguarded?: readonly string[]
	/**
	 * Schemes that `config.api_root` may have, such as `['irc', 'ircs']`: 1-16 of them, lower case. Absent: `http` and `https`.
	 * The adapter itself connects to addresses of other schemes; callers without the scope `*` may only use those in
	 * `channels.allowed_api_roots`, whatever the scheme.
	 */
	schemes?: readonly string[]
	/**
	 * Connects. Settles once the platform has accepted the token, within 60 s; messages are received from then on. Throws
	 * `link.error('refused', …)` if only a person can help, such as with a wrong token: the gateway tries again once the
	 * token, the channel or the plugin has changed. After any other error it retries with growing delays.
	 */
	connect(link: Link<Config>): Promise<Connection>
}

/** What the platform accepts. */
export interface Abilities {
	/** Best first. If one is refused (`format`), the next one is used; the last should be `plain`. */
	formats: readonly Format[]
	/** How long one typing indicator is shown, in milliseconds. Absent: the platform has none. */
	typing_ms?: number
	/**
	 * How an unfinished answer is shown, by the kind of chat. `draft`: by `draft`, apart from messages. `edit`: a message that
	 * grows, by `edit`. Absent: not at all; the answer arrives in one piece.
	 */
	preview?: Partial<Record<ChatKind, 'draft' | 'edit'>>
	/**
	 * Minimum milliseconds between two messages or edits: in one chat (default 1,000), in a group (default `chat_ms`), and in
	 * all chats together (default 35).
	 */
	pace?: { chat_ms?: number; group_ms?: number; channel_ms?: number }
	/**
	 * It sends files, by `sendFile`, of at most `max_bytes`. Absent: it sends none, and users get the name of the file and how
	 * to get it.
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
	/** Of one message: UTF-16 code units of its text, without the markup's own signs where that is `html`. */
	max_length: number
	/**
	 * Limit of one message in bytes of its text as UTF-8, markup included; 256 or more. Absent: only `max_length` applies.
	 * The gateway keeps both limits, and splits neither a character nor a code block.
	 */
	max_bytes?: number
}

/** `private`: the bot and one person. */
export type ChatKind = 'private' | 'group'

/** Ids are the platform's own and never change; names that users choose are not ids. 1-128 printable ASCII characters. */
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
		/** Ids of what contains the chat, such as its server, the nearest first: their binding applies if the chat has none. */
		within?: readonly string[]
	}
	sender: { id: string; name?: string }
	/** Without the bot's own name if that only addresses the bot. '' if there is no text. A command begins with `/`. */
	text: string
	/** Whether it is for the bot: sent in private, with its name, or as a reply to it. */
	addressed: boolean
	/** What came with it besides text, in words, such as `a voice message`: for models, if `attachments` has nothing of it. */
	attachment?: string
	/** Files that came with it and can be loaded, by `Connection.load`. The first 10 count. */
	attachments?: readonly IncomingFile[]
	/** The message that it replies to, if the platform delivers its text. Commands and answers are read from `text` alone. */
	quoted?: QuotedMessage
	/**
	 * The position of the platform's feed after this message, at most 4,096 characters. `link.cursor` returns the newest one
	 * that was accepted. If one response of the platform has several messages, only the last of them has the position after
	 * the response; the others have the position before it, so that all are delivered again if one cannot be accepted.
	 */
	cursor?: string
}

/** An earlier message to which a person replies. */
export interface QuotedMessage {
	/**
	 * Its text, or the part that the person selected. Of a message without text, what it is, such as `[a photo]`. The model sees
	 * the first 500 characters, or 200 with `own`. Without text the quote is ignored.
	 */
	text: string
	/** Name of its author, if known. */
	sender?: string | null
	/** Whether the bot wrote it: the conversation already has it, so the model sees less of it. */
	own?: boolean
}

/** An image, a file or a recording that came with a message. */
export interface IncomingFile {
	/** What people call it, such as `a photo`: for the model, if it cannot be loaded. */
	what: string
	name?: string
	/** The type according to the platform; the bytes take precedence. */
	media_type?: string
	/** In bytes, if the platform provides it. A file above the gateway's limit is not loaded. */
	size?: number
	/** Length of a recording. */
	seconds?: number
	/**
	 * The reference for `Connection.load`, such as an id or an address; 1-4,096 characters. It is stored, so it must not contain
	 * the token.
	 */
	ref: string
}

export interface LoadOptions {
	/** Aborts when the bytes would come too late. */
	signal: AbortSignal
	/** A larger file is not used: throw as soon as it is known to be larger. */
	max_bytes: number
}

export interface OutgoingMessage {
	chat: ChatRef & { kind: ChatKind }
	/** Id of the message that it answers; absent in private chats and after the first part of an answer. */
	reply_to?: string
	/** Id of the part before it, if an answer needs several messages. */
	after?: string
	/** Not longer than the format allows, and never empty. */
	text: string
	markup: Markup
	/**
	 * 25 characters of `0-9 a-z`. The same for every attempt to send this message, even if its text has changed: a platform that
	 * supports nonces makes one message of them.
	 */
	nonce: string
}

/** A file of an answer, as a message of its own after the text. */
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
 * Codes of errors that an adapter throws. Without one, it is unknown whether the message was sent.
 * - `format`   the platform does not accept this markup; nothing was sent
 * - `limited`  too much at once; nothing was sent; give `retry_after_ms`
 * - `failed`   nothing was sent, for certain; a retry may succeed
 * - `refused`  nothing was sent, and a retry cannot succeed: the chat is gone, the bot was blocked, the token is wrong
 */
export type ChannelErrorCode = 'format' | 'limited' | 'failed' | 'refused'

export interface ChannelError extends Error {
	code: ChannelErrorCode
	retry_after_ms?: number
}

/** What the gateway gives to a connection. */
export interface Link<Config extends object = object> {
	readonly channel_id: string
	/** The bot's token, from the vault. Never log it. */
	readonly token: string
	/** Checked, with defaults. */
	readonly config: Config
	readonly log: Logger
	/** Aborts when the connection must end; `close` is called then, and calls to the link have no effect any more. */
	readonly signal: AbortSignal
	/** The last position of the feed, from an accepted message or from `advance`; null before the first one. */
	cursor(): Promise<string | null>
	/**
	 * Chats from which messages came, with the newest accepted one: to ask the platform for later ones. At most 1,000, the most
	 * active first.
	 */
	chats(): Promise<KnownChat[]>
	/**
	 * Accepts a message. Settles once it is durable, or known already, or needs no action: only then acknowledge it to the
	 * platform. Messages are accepted in the order of the calls. Throws if it cannot be accepted now: leave it with the
	 * platform, and call `lost`. A message that is not of the form above is skipped and reported to the operator: it would be
	 * invalid the next time, too.
	 */
	receive(message: IncomingMessage): Promise<void>
	/**
	 * Reports the position of the feed, with no message before it left to accept: where it begins on the first connection ever,
	 * and after messages that concern no agent. Settles once the position is stored, or at once if one was stored some seconds
	 * ago; call it as often as you like. In order with `receive`.
	 */
	advance(cursor: string): Promise<void>
	/** For problems that a connection fixes itself. It begins as `connected`; with an `error` it works, but only in part. */
	status(status: LinkStatus, error?: string): void
	/** The connection is lost: it is closed and opened again, after growing delays; not automatically if `error` is `refused`. */
	lost(error: unknown): void
	/** Makes an error to throw. The message is shown to operators; it should name what to change. */
	error(code: ChannelErrorCode, message: string, more?: { retry_after_ms?: number; cause?: unknown }): ChannelError
}

export interface KnownChat {
	id: string
	/** Id of the newest accepted message of the chat. */
	last_id: string
	/** Id of the newest message that an agent is known to have sent there; absent if there is none. */
	sent_id?: string
	/**
	 * When it was bound to its agent, or when the rules for which messages are answered last changed, ISO 8601: ignore earlier
	 * messages.
	 */
	bound_at: string
}

/**
 * Sends messages, and loads files. Its methods may be called at the same time for different chats, and not for the same one. But
 * `typing` and `load` may still be running when another is called, and so may calls that time out: `draft` and a preview's
 * `edit` after 5 s, or 1 s if an answer is due, any other call after 60 s.
 */
export interface Connection {
	/** Name of the bot, for operators, such as `@my_bot`. */
	readonly name?: string
	/** Returns the new message's id. */
	send(message: OutgoingMessage): Promise<{ id: string }>
	/** Needed for previews by `edit`. Setting the same text again is not an error. Its nonce is that of the message it changes. */
	edit?(id: string, message: OutgoingMessage): Promise<void>
	/** Shows text that is not sent yet, and replaces the text that it showed before. Needed for previews by `draft`. */
	draft?(message: OutgoingMessage): Promise<void>
	typing?(chat: ChatRef): Promise<void>
	/**
	 * The bytes of a file, by its `IncomingFile.ref`. Needed if messages have `attachments`. Called after `receive` has settled,
	 * and again after a restart: the message may have come by an earlier connection. Files of one chat are loaded one after
	 * another, those of one message within 20 s together. If it throws, or the file has expired, the model gets a description of
	 * the file and the reason why it is missing: the error's message must not contain the token.
	 */
	load?(ref: string, options: LoadOptions): Promise<Uint8Array>
	/**
	 * If the platform has no nonces: a value that helps `find` later, at most 256 characters; stored with a message that is
	 * about to be sent.
	 */
	mark?(chat: ChatRef): string | undefined
	/**
	 * Finds out whether this message was sent although no response was received. Returns its id, or undefined if it was not
	 * sent. Called before a message is sent again, also after a restart. Without it, and without nonces, a user may read a
	 * message twice.
	 */
	find?(message: OutgoingMessage, mark: string | undefined): Promise<{ id: string } | undefined>
	/**
	 * Sends a file, and returns the new message's id. Required with `can.files`. Errors have the codes of `send`; after `format`
	 * and `refused` users get a line in place of the file. With a nonce, or `find`, for its messages, a platform needs the same
	 * here.
	 */
	sendFile?(file: OutgoingFile, bytes: Uint8Array): Promise<{ id: string }>
	/** Like `find`, for a file. */
	findFile?(file: OutgoingFile, mark: string | undefined): Promise<{ id: string } | undefined>
	/** Releases everything, within 10 s. Calls in progress may fail. Called once, also after `lost`. */
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
	/** Of its channel. */
	config: Record<string, unknown>
}

declare module '../../core/cli/doctor/contract.ts' {
	interface DoctorFile {
		/**
		 * By the `type` of a channel: the problem with a bot, as a phrase about its token, and what to do; null without a
		 * problem.
		 */
		bots?: Readonly<
			Record<string, (bot: Bot, context: CheckContext) => Promise<Pick<Finding, 'message' | 'fix'> | null>>
		>
	}
}
