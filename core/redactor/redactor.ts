/**
 * The only place that replaces secrets in what is sent, stored or logged. A safety net, not a barrier: docs/security.md lists what it
 * covers. Two rules keep it from disclosing a secret:
 * - It replaces complete values only, in the encodings of redactor/forms.ts, in a time that does not reveal how much of a value a
 *   text contains.
 * - For each agent, and for the gateway itself, it has only the secrets that they can have seen. A secret that the writer of a text
 *   cannot know is not redacted in that text.
 *
 * Code that discloses a secret adds it. These files redact: plugins/runs/run-log.ts and core/events/event-bus.ts (events, journals),
 * core/store/redacting.ts (records, jobs), core/log/log.ts (logs), plugins/runs/for-model.ts (model requests). HTTP responses are not
 * redacted: they consist of data that was redacted when it was written, and of the caller's own words.
 */
import type { NewEvent } from '../protocol.ts'
import { NAMELESS, SecretSet } from './secret-set.ts'
import type { Secret } from './secret-set.ts'
import { View } from './view.ts'
import type { Redaction } from './view.ts'
import { mapData } from './walk.ts'

export { isRedactable } from './secret-set.ts'
export type { Secret } from './secret-set.ts'
export type { Redaction, View } from './view.ts'

/**
 * Who can have seen a secret: an agent, a model provider (its own key), or the gateway in its own work, such as a
 * bot's token.
 */
export type Owner = { name: string; uid: string } | { provider: string } | 'gateway'
/** The author of a text. Agents are identified by name or by uid. */
export type Writer = { agent: string } | { uid: string } | { provider: string } | 'gateway'

export interface Redactor {
	/**
	 * Redacts the secret in the owner's texts from now on, even after it is deleted. Bounded to the 256 secrets that the owner read
	 * last, and to the 8 newest values under one id. False if the value is not redactable; see `isRedactable`.
	 */
	add(owner: Owner, secret: Secret): boolean
	/** The view for text that these writers wrote, or that is about them. The list is read again for each operation. */
	of(writers: readonly Writer[]): View
	/** To be called when the agent with this uid is deleted. */
	forget(uid: string): void
	/** Declares the scope whose holders may see the names of secrets; until then only `*` may. */
	showNamesTo(scope: string): void
	/** What a caller with these scopes may read; `*` includes all. */
	clearanceOf(scopes: readonly string[]): Clearance
	/** Reports what all views redact, until the returned function is called. `listener` must not throw. */
	onRedacted(listener: (found: Redaction) => void): () => void
}

/** Replaces the names of secrets in marks, `[redacted:NAME]`, for readers who may not list secrets. */
export interface Clearance {
	readonly seesNames: boolean
	/** Marks must be complete, so this comes before any shortening. Also accepts JSON text. */
	text(text: string): string
	data<T>(value: T): T
	event<E extends NewEvent>(event: E): E
}

/** Limit of the tables of all sets, in bytes. Above it, the oldest tables are dropped until they are needed again. */
const TABLE_BYTES = 64 * 1024 * 1024

const noSets: readonly SecretSet[] = []

const namesShown: Clearance = { seesNames: true, text: (text) => text, data: (value) => value, event: (event) => event }
/** For readers who never see names, such as people in a chat: they see that there was a secret, but not which one. */
export const namesHidden: Clearance = {
	seesNames: false,
	text: withoutNames,
	data: (value) => mapData(value, textWithoutNames),
	event(event) {
		let payload = mapData(event.payload, textWithoutNames)
		if (event.event_type === 'security.redacted') payload = { sink: payload.sink, count: payload.count }
		return payload === event.payload ? event : { ...event, payload }
	},
}

/** Also matches a mark that was cut within its name, at the end of a text or of a string in JSON. */
const MARK = /\[redacted:[\w .:/@+-]{1,128}(?:\]|(?=[…"\\])|$)/g

const textWithoutNames = { text: withoutNames }

/** Also for JSON text, since a mark needs no escapes. */
function withoutNames(text: string): string {
	return text.includes('[redacted:') ? text.replace(MARK, NAMELESS) : text
}

export function openRedactor(): Redactor {
	const listeners = new Set<(found: Redaction) => void>()
	/** The uid of each agent, by its name. */
	const agents = new Map<string, string>()
	/** By `keyOf`. */
	const sets = new Map<string, SecretSet>()
	const tables = new Set<SecretSet>()
	let nameScope: string | undefined

	const report = (found: Redaction): void => {
		for (const listener of listeners) listener(found)
	}
	const compiling = (made: SecretSet): void => {
		tables.delete(made)
		tables.add(made)
		let bytes = 0
		for (const set of tables) bytes += set.bytes
		for (const set of tables) {
			if (bytes <= TABLE_BYTES || set === made) break
			bytes -= set.bytes
			set.forget()
			tables.delete(set)
		}
	}
	const setOf = (owner: Owner): SecretSet => {
		const key = keyOf(owner)
		let set = sets.get(key)
		if (!set) sets.set(key, (set = new SecretSet(compiling)))
		// Uids increase with time: of two agents with the same name, the later one is the current one.
		if (typeof owner === 'object' && 'uid' in owner && owner.uid >= (agents.get(owner.name) ?? ''))
			agents.set(owner.name, owner.uid)
		return set
	}
	const found = (writer: Writer): SecretSet | undefined => {
		const isNamed = typeof writer === 'object' && 'agent' in writer
		return sets.get(isNamed ? (agents.get(writer.agent) ?? '') : keyOf(writer))
	}
	/** Without empty ones. */
	const setsOf = (writers: readonly Writer[]): readonly SecretSet[] => {
		let filled: SecretSet[] | undefined
		for (const writer of writers) {
			const set = found(writer)
			if (set && !set.isEmpty) (filled ??= []).push(set)
		}
		return filled ?? noSets
	}

	return {
		add: (owner, secret) => setOf(owner).add(secret),
		forget(uid) {
			sets.delete(uid)
			for (const [name, current] of agents) if (current === uid) agents.delete(name)
		},
		of: (writers) => new View(() => setsOf(writers), report),
		showNamesTo(scope) {
			nameScope = scope
		},
		clearanceOf: (scopes) =>
			scopes.includes('*') || (nameScope !== undefined && scopes.includes(nameScope)) ? namesShown : namesHidden,
		onRedacted(listener) {
			listeners.add(listener)
			return () => listeners.delete(listener)
		},
	}
}

function keyOf(owner: { uid: string } | { provider: string } | 'gateway'): string {
	if (owner === 'gateway') return owner
	return 'uid' in owner ? owner.uid : `provider ${owner.provider}`
}
