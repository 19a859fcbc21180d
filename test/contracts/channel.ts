/**
 * Checks that an adapter fulfils the contract of `plugins/channels/adapter.ts`. No gateway runs: the suite provides the link, and the
 * adapter connects to a test platform that you provide.
 *
 *     checkChannel(t, { adapter, platform: startMyPlatform })
 *
 * `docs/writing-a-channel.md` describes how to write the platform; `test/contracts/channel/matrix.test.ts` is an example.
 */
import type { ChannelAdapter, ChatKind } from '../../plugins/channels/adapter.ts'
import { absenceCheck } from './channel/absence.ts'
import { closingChecks } from './channel/closing.ts'
import { connectingChecks } from './channel/connecting.ts'
import { incomingChecks } from './channel/incoming.ts'
import { outgoingChecks } from './channel/outgoing.ts'
import { sendingOnceChecks } from './channel/once.ts'
import { sendingFilesChecks } from './channel/sending-files.ts'
import { runCheck } from './channel/harness.ts'
import type { Check } from './channel/harness.ts'

export interface ChannelSuite {
	adapter: ChannelAdapter
	/** Starts a platform for one check: a server in this process that speaks the platform's protocol. The check closes it. */
	platform: () => Promise<TestPlatform>
	/**
	 * How long to wait for something that should happen, default 60,000. Only time in which this process can run counts, so a busy
	 * machine has no effect. With a lower value, failures are found sooner.
	 */
	patience_ms?: number
	/**
	 * What the adapter or its platform does not support, such as `{ threads: false }`. Checks that need it are skipped, and one check
	 * confirms that it is really absent. Everything else must be supported.
	 */
	abilities?: Partial<Record<Ability, boolean>>
}

/**
 * Abilities of the adapter: `config` and `unguarded` keys, `edits`, `drafts`, `typing`, `sends_files`, and `find`, which a platform
 * with nonces does not need. Of the platform: `groups`, `replies`, `threads`, `attachments`, `files` that the bot can load, `repeats`
 * of a message. Of the test platform: the faults `lost`, `limited`, `failed`, `refused`, `format`, `stalled`, and `revoke`.
 */
export type Ability =
	| 'config'
	| 'unguarded'
	| 'groups'
	| 'replies'
	| 'threads'
	| 'attachments'
	| 'files'
	| 'repeats'
	| 'edits'
	| 'drafts'
	| 'typing'
	| 'sends_files'
	| 'find'
	| Fault
	| 'revoke'

type Fault = 'lost' | 'limited' | 'failed' | 'refused' | 'format' | 'stalled'

/** Each optional part belongs to an ability of the same meaning; see `ChannelSuite.abilities`. `silent` and `mumble` refine a check. */
export interface TestPlatform {
	/** A channel's config, as an operator writes it. */
	config: Record<string, unknown>
	token: string
	wrong_token: string
	/** A new chat of that kind, with the bot and a person in it. Undefined if the platform has no such chats. */
	chat(kind: ChatKind): TestChat | undefined | Promise<TestChat | undefined>
	/** Cuts all connections of the bot, which may reconnect at once. */
	cut(): void
	/** The number of unanswered requests and of the bot's sockets in use, without idle connections. */
	open(): number
	close(): Promise<void>
	/** Determines what happens to the bot's next message, once. */
	next?: {
		/** It is accepted, but its answer is lost: the connection is cut. */
		lost?(): void
		/** It is not accepted, and the bot gets the platform's error of this kind. */
		limited?(): void
		failed?(): void
		refused?(): void
		format?(): void
		/** It is not answered. */
		stalled?(): void
	}
	/** The platform accepts connections, but sends nothing on them. */
	silent?(): void
	/** Revokes the bot's token, and ends all connections that use it. */
	revoke?(): void
}

export interface TestChat {
	/** The id that the adapter should use. */
	id: string
	kind: ChatKind
	/** The person writes to the bot: in a group by mentioning it, or as people on that platform address a bot. */
	say(text: string): void | Promise<void>
	/** The person writes in a group without addressing the bot. */
	mumble?(text: string): void | Promise<void>
	/** The person writes to the bot in a thread with a separate conversation. */
	sayInThread?(text: string): void | Promise<void>
	/** The person replies to the bot's message with this id. */
	reply?(id: string, text: string): void | Promise<void>
	/** The person sends an image or a recording to the bot. */
	attach?(): void | Promise<void>
	/** The person sends a file to the bot that can be loaded. */
	attachFile?(bytes: Uint8Array, name: string): void | Promise<void>
	/** The platform delivers the person's newest message again. */
	repeat?(): void | Promise<void>
	/** The bot's messages as the person now sees them, oldest first. */
	shown(): ShownMessage[] | Promise<ShownMessage[]>
	/** How often the bot was shown as typing. */
	typed?(): number
	/** The text of the current draft. */
	draft?(): string | undefined
}

export interface ShownMessage {
	id: string
	/** The visible text, without markup. */
	text: string
	reply_to?: string | undefined
	thread_id?: string | undefined
	/** A file that the bot sent; such a message has no text. */
	file?: { name: string; bytes: Uint8Array } | undefined
}

/** All checks, in the order of an adapter's life. */
export const channelChecks: readonly Check[] = [
	...connectingChecks,
	...incomingChecks,
	...outgoingChecks,
	...sendingOnceChecks,
	...sendingFilesChecks,
	...closingChecks,
]

/** Runs a test: tap's `t`, or `{ test }` of `node:test`. */
export interface Runner {
	test(name: string, run: () => Promise<void>): unknown
}

/** Runs every applicable check as a separate test. */
export function checkChannel(t: Runner, suite: ChannelSuite): void {
	const { abilities = {} } = suite
	for (const check of [...channelChecks, absenceCheck]) {
		if (check.needs?.some((one) => abilities[one] === false)) continue
		void t.test(check.name, () => runCheck(check, suite))
	}
}
