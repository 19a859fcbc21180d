/**
 * The one place that takes secrets out of what is told, stored or logged. A net, not a wall: it finds a secret's text and
 * its usual spellings (redactor/forms.ts), also where an ellipsis cuts it off behind 16 characters, not every way to write
 * it.
 *
 * Who reads a secret adds it; the sinks pass all text by here: events and the run's journal (core/run-log.ts,
 * core/events.ts), records and jobs (core/store/redacting.ts), answers over HTTP (core/http.ts), logs (core/log.ts), what
 * a model is sent (plugins/runs/executor.ts). What was written before the secret was added is read through it too, but
 * stays on the disk as it is.
 *
 * Names of agents, which are keys and addresses, and byte arrays pass as they are.
 */
import { KnownSecrets } from './redactor/known-secrets.ts'
import type { Counts } from './redactor/known-secrets.ts'
import { mapStrings } from './redactor/walk.ts'

export interface Secret {
	/** Stable, unique. */
	id: string
	/** Shows in its place: `[redacted:NAME]`. */
	name: string
	/** At least 8 characters; shorter ones would take ordinary text apart and are not looked for. */
	value: string
}

/** Where a secret was about to show. `message` is what goes out by a channel, `stream` an answer in the making. */
export type Sink = 'event' | 'record' | 'response' | 'log' | 'model' | 'stream' | 'message'

export interface Redactor {
	/**
	 * From now on it is looked for. Another value under the same id is looked for beside the earlier ones, up to 16 of them.
	 * False where it is not looked for: the value is too short, or part of a word that the gateway itself writes.
	 */
	add(secret: Secret): boolean
	/** No value of this id is looked for any more. */
	remove(id: string): void
	/**
	 * It is gone, and is looked for on, since whoever has read it may still tell of it: until another secret has its value,
	 * or a hundred others went after it.
	 */
	retire(id: string): void
	/** False while nothing is looked for: then all the rest costs nothing. */
	readonly active: boolean
	/** `except`: ids of secrets that may show here. Text that went through once is not changed again. */
	text(text: string, sink: Sink, except?: ReadonlySet<string>): string
	/** Plain data with every string in it, keys too. The same object where nothing was found. */
	data<T>(value: T, sink: Sink, except?: ReadonlySet<string>): T
	/** For text that comes in pieces: holds back what may be the beginning of a secret. */
	stream(sink: Sink, except?: ReadonlySet<string>): TextStream
	/** Hears of what was taken out; until the returned function is called. Must not throw. */
	onRedacted(heard: (found: Redaction) => void): () => void
	/** One for the same secrets that tells what it took out to `heard`, and to nobody else. */
	reportingTo(heard: (found: Redaction) => void): Redactor
}

export interface TextStream {
	/** What can be shown by now; may be empty. */
	push(piece: string): string
	/** The rest. Then the stream may begin anew. */
	end(): string
}

export interface Redaction {
	id: string
	name: string
	sink: Sink
	count: number
}

export function openRedactor(): Redactor {
	const heard = new Set<(found: Redaction) => void>()
	const known = new KnownSecrets()
	const tellAll = (found: Redaction): void => {
		for (const hear of heard) hear(found)
	}
	return viewOf(known, tellAll, (hear) => {
		heard.add(hear)
		return () => heard.delete(hear)
	})
}

function viewOf(known: KnownSecrets, tell: (found: Redaction) => void, onRedacted: Redactor['onRedacted']): Redactor {
	/** Does what `work` does with a way to take secrets out, then tells of what was found. */
	const told = <T>(sink: Sink, work: (found: Counts) => T): T => {
		const counts: Counts = new Map()
		const result = work(counts)
		for (const [id, count] of counts) tell({ id, name: known.nameOf(id), sink, count })
		return result
	}
	return {
		add: (secret) => known.add(secret),
		remove: (id) => known.remove(id),
		retire: (id) => known.retire(id),
		get active() {
			return known.any
		},
		text: (text, sink, except) => (known.any ? told(sink, (found) => known.clean(text, found, except)) : text),
		data: (value, sink, except) =>
			known.any ? told(sink, (found) => mapStrings(value, (text) => known.clean(text, found, except))) : value,
		stream(sink, except) {
			let held = ''
			return {
				push(piece) {
					if (!known.any && held === '') return piece
					const text = held + piece
					const safe = known.safeLength(text, except)
					held = text.slice(safe)
					return told(sink, (found) => known.clean(text.slice(0, safe), found, except))
				},
				end() {
					const rest = held
					held = ''
					return told(sink, (found) => known.clean(rest, found, except))
				},
			}
		},
		onRedacted,
		reportingTo: (hear) => viewOf(known, hear, onRedacted),
	}
}
