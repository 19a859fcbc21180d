/**
 * What the author of a channel writes: one object that connects to a platform, says what came in and sends what goes out.
 * Everything else is done once, by the gateway, for every platform: pairing, commands, one run for each message however
 * often it is delivered, splitting and markup, previews while the agent works, typing, pace, retries, connecting again,
 * status. `skills-examples/matrix-channel` is a whole one; `test/contracts/channel.ts` tells whether yours is right.
 *
 *     export default {
 *       name: 'my-chat',
 *       needs: ['channels'],
 *       start: (ctx) => ctx.extend('channel', { type: 'my_chat', label: 'My Chat', can: {…}, connect: async (link) => … }),
 *     } satisfies Plugin
 *
 * Words
 * - channel     one account of the agent's on a platform: a bot with its token
 * - chat        where people and the bot talk: a direct chat, a group, a room
 * - adapter     this file's `ChannelAdapter`: knows one platform
 * - link        what the gateway gives to a connection
 * - connection  what the adapter gives back: the way out
 *
 * Nothing here is imported at run time, so that an adapter's file needs no package of ours.
 */
import type Joi from 'joi'
import type { Logger } from '../../core/log.ts'

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
	 * can reach. Leave out every address, host, port, path and proxy: who sets those is sent the operator's bot token. The
	 * gateway's own keys need not be here, and `api_root` cannot be.
	 */
	unguarded?: readonly string[]
	/**
	 * Connects. Settles once the platform has taken the token, within 60 s, and what comes in is received from then on.
	 * Throws `link.error('refused', …)` where only a person can help, such as with a wrong token: it is tried again once
	 * the token, the channel or the plugin is another. What else it throws is tried again after growing delays.
	 */
	connect(link: Link<Config>): Promise<Connection>
}

/** What the platform takes. */
export interface Abilities {
	/** Best first. Where one is refused (`format`) the next one is used; the last should be `plain`. */
	formats: readonly Format[]
	/** For how long one sign of typing shows, in milliseconds. Absent: there is none. */
	typing_ms?: number
	/**
	 * How an answer in the making shows, by the kind of chat. `draft`: by `draft`, apart from messages. `edit`: a message
	 * that grows, by `edit`. Absent: not at all, and the answer comes in one piece.
	 */
	preview?: Partial<Record<ChatKind, 'draft' | 'edit'>>
	/**
	 * Least milliseconds between two messages or edits: in one chat (1,000 where absent), in one that is a group (`chat_ms`
	 * where absent), and of all chats (35).
	 */
	pace?: { chat_ms?: number; group_ms?: number; channel_ms?: number }
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
}

/** `private`: the bot and one person. */
export type ChatKind = 'private' | 'group'

/** Ids are the platform's own and never change; names that people give themselves are no ids. 1-128 printable ASCII characters. */
export interface ChatRef {
	id: string
	/** A topic or thread of the chat that has a conversation of its own. */
	thread_id?: string
}

export interface IncomingMessage {
	/** The same again when the platform delivers the message again; no other message of this chat has it. */
	id: string
	chat: ChatRef & {
		kind: ChatKind
		/** Ids of what the chat lies in, the nearest first, such as its server: a binding of those counts where the chat has none. */
		within?: readonly string[]
	}
	sender: { id: string; name?: string }
	/** Without the bot's own name where that only addresses it. '' where there is none. A command begins with `/`. */
	text: string
	/** Is it for the bot: said in private, to its name, or in reply to it? */
	addressed: boolean
	/** What else came with it that a model cannot read here, such as `a voice message`. */
	attachment?: string
	/**
	 * Where the platform's feed stands behind this message, at most 4,096 characters. The newest that was taken is what
	 * `link.cursor` answers. Where one answer of the platform holds several messages, only the last of them has the place
	 * behind it; those before it have the place where it began, so that all of them come again if one cannot be taken.
	 */
	cursor?: string
}

export interface OutgoingMessage {
	chat: ChatRef & { kind: ChatKind }
	/** Id of the message that it answers; absent in private chats and behind the first part of an answer. */
	reply_to?: string
	/** Id of the part before it, where an answer takes several messages. */
	after?: string
	/** Not longer than the format allows, and never empty. */
	text: string
	markup: Markup
	/**
	 * 25 characters of `0-9 a-z`. The same for every attempt to send this message, whatever its text is by then: a platform that
	 * knows nonces makes one message of them.
	 */
	nonce: string
}

/** How a connection stands. */
export type LinkStatus = 'connected' | 'reconnecting'

/**
 * Codes of errors that an adapter throws. Without one, nobody knows whether the message was sent.
 * - `format`   the platform does not take this markup; nothing was sent
 * - `limited`  too much at once; nothing was sent; give `retry_after_ms`
 * - `failed`   nothing was sent, for sure; it may be tried again
 * - `refused`  nothing was sent, and trying again is no use: the chat is gone, the bot was blocked, the token is wrong
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
	/** Aborts when the connection shall end; `close` is called then, and nothing of the link does anything any more. */
	readonly signal: AbortSignal
	/** Where the feed stood last, by a message that was taken or by `advance`; null where it never did. */
	cursor(): Promise<string | null>
	/** Chats from which messages came, with the newest one that was taken: to ask the platform what came since. At most 1,000, the liveliest first. */
	chats(): Promise<KnownChat[]>
	/**
	 * Takes a message. Settles once it is durable, or known already, or nothing to act upon: only then may the platform be
	 * told that it has arrived. Messages are taken in the order of the calls. Throws where it cannot be taken now: leave it
	 * with the platform, and call `lost`. One that is not of the form above is left out, and the operator is told: it would
	 * be the same the next time.
	 */
	receive(message: IncomingMessage): Promise<void>
	/**
	 * The feed stands there now, and nothing before it is left to take: where it begins on the first connection ever, and
	 * behind what was nobody's. Settles once that is kept, or at once where it was kept some seconds ago; call it as often
	 * as you like. In order with `receive`.
	 */
	advance(cursor: string): Promise<void>
	/** For what a connection mends by itself. It begins as `connected`; with an `error` it works, but not as it should. */
	status(status: LinkStatus, error?: string): void
	/** The connection is over: it is closed and made anew, after growing delays; never again by itself where `error` is `refused`. */
	lost(error: unknown): void
	/** Makes an error to throw. The message is shown to operators; it says what to change. */
	error(code: ChannelErrorCode, message: string, more?: { retry_after_ms?: number; cause?: unknown }): ChannelError
}

export interface KnownChat {
	id: string
	/** Id of the newest message that was taken there. */
	last_id: string
	/** Id of the newest message that an agent is known to have said there; absent where there is none. */
	sent_id?: string
	/** When it was bound to its agent, or the rules of who is answered were changed, ISO 8601: what came before is nobody's. */
	bound_at: string
}

/**
 * The way out. Its methods may be called at the same time for different chats, and not for the same one; but `typing` may
 * still be under way when another is called, and so may what takes too long: `draft` and a preview's `edit` after 5 s, or 1 s
 * where an answer is due, anything else after 60 s.
 */
export interface Connection {
	/** Who the bot is, for operators, such as `@my_bot`. */
	readonly name?: string
	/** Answers with the new message's id. */
	send(message: OutgoingMessage): Promise<{ id: string }>
	/** Needed for previews by `edit`. Saying the same text again is no error. Its nonce is that of the message it changes. */
	edit?(id: string, message: OutgoingMessage): Promise<void>
	/** Shows text that is not sent yet, in the place of what it showed before. Needed for previews by `draft`. */
	draft?(message: OutgoingMessage): Promise<void>
	typing?(chat: ChatRef): Promise<void>
	/**
	 * Where the platform knows no nonces: whatever helps `find` later, at most 256 characters; kept with a message that is
	 * about to be sent.
	 */
	mark?(chat: ChatRef): string | undefined
	/**
	 * Was this message sent, though nobody heard the answer? Answers with its id, or undefined where it was not. Asked before
	 * a message is sent again, also after a restart. Without it, and without nonces, a user may read a message twice.
	 */
	find?(message: OutgoingMessage, mark: string | undefined): Promise<{ id: string } | undefined>
	/** Gives everything back, within 10 s. What is under way may fail. Called once, also after `lost`. */
	close(): Promise<void>
}

declare module '../../core/plugin.ts' {
	interface Extensions {
		channel: ChannelAdapter
	}
}
