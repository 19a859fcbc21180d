/**
 * Tells whether an adapter does what `plugins/channels/adapter.ts` says. No gateway runs: the suite itself is what the
 * adapter is linked to, and a platform of yours is what it connects to.
 *
 *     checkChannel(t, { adapter, platform: startMyPlatform })
 *
 * `docs/writing-a-channel.md` says how to write a platform for it; `test/contracts/channel/matrix.test.ts` has one.
 */
import type { ChannelAdapter, ChatKind } from '../../plugins/channels/adapter.ts'
import { absenceCheck } from './channel/absence.ts'
import { closingChecks } from './channel/closing.ts'
import { connectingChecks } from './channel/connecting.ts'
import { incomingChecks } from './channel/incoming.ts'
import { outgoingChecks } from './channel/outgoing.ts'
import { sendingOnceChecks } from './channel/once.ts'
import { sendingFilesChecks } from './channel/sending-files.ts'
import { runCheck } from './channel/desk.ts'
import type { Check } from './channel/desk.ts'

export interface ChannelSuite {
	adapter: ChannelAdapter
	/** Starts a platform for one check: a server in this process that speaks the platform's protocol. The check closes it. */
	platform: () => Promise<TestPlatform>
	/**
	 * For how long to wait for something that should happen, 60,000 where absent: time in which this process can act, so that
	 * a busy machine changes nothing. A lower value shows sooner what is missing.
	 */
	patience_ms?: number
	/**
	 * What the adapter, or its platform, does not have: `{ threads: false }`. The checks that need it are left out, and it
	 * is checked that it is really absent. All that is not named here must be there.
	 */
	abilities?: Partial<Record<Ability, boolean>>
}

/**
 * Of the adapter: `config` and `unguarded` keys, `edits`, `drafts`, `typing`, `sends_files`, and `find`, which a platform with nonces
 * does not need. Of the platform: `groups`, `replies`, `threads`, `attachments`, `files` that the bot can load, `repeats` of a message. Of the platform for tests: the
 * faults `lost`, `limited`, `failed`, `refused`, `format`, `stalled`, and `revoke`.
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
	/** A new chat of that kind, with the bot and a person in it. Undefined where the platform has no such chats. */
	chat(kind: ChatKind): TestChat | undefined | Promise<TestChat | undefined>
	/** Cuts every connection of the bot's. It may connect again at once. */
	cut(): void
	/** Requests without an answer, and sockets of the bot's that are in use; connections that only wait to be used again do not count. */
	open(): number
	close(): Promise<void>
	/** What happens to the bot's next message, once. */
	next?: {
		/** It is taken, but the bot never hears so: the connection is cut. */
		lost?(): void
		/** It is not taken, and the bot is told so in the platform's way of saying these. */
		limited?(): void
		failed?(): void
		refused?(): void
		format?(): void
		/** There is no answer, for as long as the bot waits. */
		stalled?(): void
	}
	/** The platform takes connections, and says nothing on them. */
	silent?(): void
	/** The bot's token is taken back, and whatever hangs on it ends. */
	revoke?(): void
}

export interface TestChat {
	/** What the adapter should call it. */
	id: string
	kind: ChatKind
	/** The person says something to the bot: in a group to its name, or in the way in which people there call a bot. */
	say(text: string): void | Promise<void>
	/** In a group: to nobody in particular. */
	mumble?(text: string): void | Promise<void>
	/** To the bot, in a thread that has a conversation of its own. */
	sayInThread?(text: string): void | Promise<void>
	/** To the bot, in answer to the message of its own that has this id. */
	reply?(id: string, text: string): void | Promise<void>
	/** A picture or a recording, to the bot. */
	attach?(): void | Promise<void>
	/** A file with these bytes and this name, to the bot, which can be loaded. */
	attachFile?(bytes: Uint8Array, name: string): void | Promise<void>
	/** The platform delivers the person's newest message again. */
	repeat?(): void | Promise<void>
	/** What the person sees of the bot's, the oldest first, as it now is. */
	shown(): ShownMessage[] | Promise<ShownMessage[]>
	/** How often the bot was seen typing. */
	typed?(): number
	/** The text that shows as not sent yet. */
	draft?(): string | undefined
}

export interface ShownMessage {
	id: string
	/** As people read it, without markup. */
	text: string
	reply_to?: string | undefined
	thread_id?: string | undefined
	/** A file of the bot's, which shows without a text. */
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

/** What runs a test: tap's `t`, or `{ test }` of `node:test`. */
export interface Runner {
	test(name: string, run: () => Promise<void>): unknown
}

/** Runs every check that applies as a test of its own. */
export function checkChannel(t: Runner, suite: ChannelSuite): void {
	const { abilities = {} } = suite
	for (const check of [...channelChecks, absenceCheck]) {
		if (check.needs?.some((one) => abilities[one] === false)) continue
		void t.test(check.name, () => runCheck(check, suite))
	}
}
