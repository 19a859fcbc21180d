/**
 * Caches the newest turns of recently read conversations: in a long one, listing and reading all turns for each run would cost
 * more than the rest of the run. The cache watches the store for turns that are added or deleted.
 */
import type { ChatMessage } from '../../core/protocol.ts'
import { charactersIn } from '../../core/runs/kept-histories.ts'
import type { Change, Store } from '../../core/store/ports.ts'
import { AgedMap } from '../../core/util/aged-map.ts'
import { newestTurns, runOf } from './conversation.ts'
import { conversationKey, keys } from './keys.ts'

interface Turn {
	readonly run_id: string
	/** The turn before. Null: this is the first of its conversation. Undefined: not listed yet. */
	before: Turn | null | undefined
	/** Kept for ended runs only, which no longer change. Undefined: not read yet. */
	read?: TurnRead
}

export interface TurnRead {
	/** Empty if the turn is omitted. */
	messages: readonly ChatMessage[]
	tokens: number
	/** Its tokens if it is shown as stubs. */
	stubTokens: number
}

/** Characters of all cached turns together. */
const LIMIT = 4 * 1024 * 1024
/** The memory that a turn and a conversation use besides their messages, counted as characters. */
const TURN = 400
const CONVERSATION = 1_500
/** Turns that are listed at once. */
const PAGE = 256

const stores = new WeakMap<Store, KnownTurns>()

export function knownTurns(store: Store, uid: string, conversation: string): KnownConversation {
	let known = stores.get(store)
	if (!known) stores.set(store, (known = new KnownTurns(store)))
	return known.of(uid, conversation)
}

class KnownTurns {
	readonly #store: Store
	/** Least recently read first. */
	readonly #conversations = new AgedMap<string, KnownConversation>()
	/** By agent: the number of its cached conversations. */
	readonly #watched = new Map<string, { stop: () => void; conversations: number }>()
	#characters = 0

	constructor(store: Store) {
		this.#store = store
	}

	of(uid: string, conversation: string): KnownConversation {
		const key = conversationKey(uid, conversation)
		let known = this.#conversations.get(key)
		if (!known) {
			this.#watch(uid)
			known = new KnownConversation(this.#store, { uid, conversation }, (self, characters) => {
				if (this.#conversations.get(key) !== self) return
				this.#characters += characters
				if (self.isOutdated) this.#forget(key, self)
				else this.#shrink()
			})
			this.#characters += CONVERSATION
		}
		this.#conversations.set(key, known)
		return known
	}

	#watch(uid: string): void {
		const watched = this.#watched.get(uid) ?? {
			stop: this.#store.watch(keys.allTurns(uid), (change) => {
				const [, , conversation = ''] = change.key
				this.#conversations.get(conversationKey(uid, conversation))?.apply(change)
			}),
			conversations: 0,
		}
		watched.conversations++
		this.#watched.set(uid, watched)
	}

	#shrink(): void {
		while (this.#characters > LIMIT) {
			const oldest = this.#conversations.takeOldest()
			if (!oldest) return
			this.#forget(...oldest)
		}
	}

	#forget(key: string, { uid, characters }: KnownConversation): void {
		this.#conversations.delete(key)
		this.#characters -= characters
		const watched = this.#watched.get(uid)
		if (!watched || --watched.conversations > 0) return
		watched.stop()
		this.#watched.delete(uid)
	}
}

class KnownConversation {
	readonly uid: string
	readonly #conversation: string
	readonly #store: Store
	readonly #changed: (self: KnownConversation, characters: number) => void
	/** Null: the conversation has no turns. Undefined: it is not listed yet. */
	#newest: Turn | null | undefined
	/** Ids of turns that were added before the first listing. */
	#early: string[] = []
	characters = CONVERSATION
	/** A turn was deleted or inserted before others: the turns must be listed again. */
	isOutdated = false

	/** `changed` is called when the conversation is outdated, or grows by `characters`. */
	constructor(
		store: Store,
		{ uid, conversation }: { uid: string; conversation: string },
		changed: (self: KnownConversation, characters: number) => void,
	) {
		this.#store = store
		this.uid = uid
		this.#conversation = conversation
		this.#changed = changed
	}

	async newest(): Promise<Turn | null> {
		return this.#newest === undefined ? this.list() : this.#newest
	}

	/** Lists a page of the turns before `turn`, or of the newest ones. Returns the newest of the page. */
	async list(turn?: Turn): Promise<Turn | null> {
		const listed: Turn[] = []
		for await (const key of newestTurns(this.#store, { uid: this.uid }, this.#conversation, turn?.run_id, PAGE))
			listed.push({ run_id: runOf(key), before: undefined })
		for (const [at, later] of listed.entries()) later.before = listed[at + 1]
		const [first = null] = listed
		// Another reader may have listed them meanwhile.
		const known = turn ? turn.before : this.#newest
		if (known !== undefined) return known
		if (turn) turn.before = first
		else this.#newest = first
		this.#grow(listed.length * TURN)
		for (const run_id of this.#early.splice(0).toSorted()) this.#add(run_id)
		return first
	}

	/** Caches the content of a turn. */
	keep(turn: Turn, read: TurnRead): void {
		if (turn.read) return
		turn.read = read
		this.#grow(charactersIn(read.messages))
	}

	/** Drops the turns before this one, which later requests omit. */
	forgetBefore(turn: Turn): void {
		let characters = 0
		for (let { before } = turn; before; { before } = before)
			characters += TURN + (before.read ? charactersIn(before.read.messages) : 0)
		turn.before = undefined
		this.#grow(-characters)
	}

	/** Applies the change of a turn in the store. */
	apply({ key, value }: Change<unknown>): void {
		const run_id = runOf(key)
		if (value === undefined) this.#outdate()
		else if (this.#newest === undefined) this.#early.push(run_id)
		else this.#add(run_id)
	}

	#add(run_id: string): void {
		const newest = this.#newest ?? null
		// The listing has included it.
		if (run_id === newest?.run_id) return
		if (newest && run_id < newest.run_id) return this.#outdate()
		this.#newest = { run_id, before: newest }
		this.#grow(TURN)
	}

	#outdate(): void {
		this.isOutdated = true
		this.#changed(this, 0)
	}

	#grow(characters: number): void {
		this.characters += characters
		this.#changed(this, characters)
	}
}
