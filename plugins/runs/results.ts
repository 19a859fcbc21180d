/**
 * Long tool results: the model sees the beginning and the end. The complete text is stored in pieces in the agent's scope until
 * the run is deleted, and `readResult` reads any part of it.
 */
import { hash } from 'node:crypto'
import { wireName } from '../../sandbox/wire-name.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { isName } from '../../core/store/keys.ts'
import type { Key, Op, RecordChange, Store } from '../../core/store/ports.ts'
import { isInside } from '../shared/part-of.ts'
import type { TextPart } from '../shared/part-of.ts'
import type { RunLog } from './run-log.ts'

/** The call that returned a result. */
interface ResultPlace {
	uid: string
	run_id: string
	call_id: string
}

/** How a result is shown and stored. */
export interface ShownResult {
	/** The text for the journal, abridged if it is long. */
	content: string
	/** Characters of the complete result; absent if `content` is all of it. */
	size?: number
	/** Stores the complete text; to be written with the journal step. */
	change?: RecordChange
	/** Abridges another version of the same result in the same way, such as the one in which a grant reveals secrets to the model. */
	abridge(text: string): string
}

interface ResultPiece {
	text: string
	/** Characters before it. */
	at: number
	total: number
}

/** Stored characters of one result; the rest is lost, and the model sees that. */
const RESULT_LIMIT = 8 * 1024 * 1024
/** Stored characters of all results of one run. */
const RUN_LIMIT = 64 * 1024 * 1024
/** Characters of a piece: far below the size limit of a record, whatever the script. */
const PIECE = 256 * 1024
/** The share of an abridged result that comes from its beginning. */
const HEAD = 0.75
/** Ids of calls that are used unchanged in the id of their result. */
const PART = /^[\w.-]{1,64}$/

/** Stored characters of results that are not in the run's journal yet, by call: concurrent calls may end at the same time. */
const unwritten = new WeakMap<RunLog, Map<string, number>>()

/** Abridges a result of more than `limit` characters, and stores the complete text without secrets. */
export function showResult(log: RunLog, place: ResultPlace, content: string, limit: number): ShownResult {
	if (content.length <= limit) return { content, abridge: (text) => text }
	const size = content.length
	const text = log.redactor.text(content.toWellFormed(), 'record')
	const stored = wholeStart(text, Math.min(RESULT_LIMIT, Math.max(0, RUN_LIMIT - storedBefore(log, place.call_id))))
	unwritten.set(log, (unwritten.get(log) ?? new Map<string, number>()).set(place.call_id, stored.length))
	const note = (shown: number, offset: number): string => {
		const left = `[… ${size - shown} of ${size} characters are omitted here`
		if (stored.length === 0)
			return `${left}, and are not stored, since the results of this run are too long already; ask for less at a time …]`
		const where = stored.length < text.length ? `the first ${stored.length} are stored; read on` : 'read on'
		const how = JSON.stringify({ result_id: resultId(place), offset })
		return `${left}; ${where} with ${wireName('conversation.read')} ${how} …]`
	}
	const abridge = (version: string): string => {
		if (version.length <= limit) return version
		const head = wholeStart(version, Math.floor(limit * HEAD))
		const tail = wholeEnd(version, limit - Math.floor(limit * HEAD))
		return `${head}\n${note(head.length + tail.length, head.length)}\n${tail}`
	}
	const { uid, run_id, call_id } = place
	const ops = piecesOf(stored).map((value, at): Op => ({ key: pieceKey(uid, run_id, callPart(call_id), at), value }))
	return {
		content: abridge(text),
		size,
		abridge,
		...(ops.length > 0 && { change: { scope: agentScope(place.uid), ops: () => Promise.resolve(ops) } }),
	}
}

/** The id of a result, unique for the agent: for `conversation.read`. */
export function resultId({ run_id, call_id }: Pick<ResultPlace, 'run_id' | 'call_id'>): string {
	return `${run_id}:${callPart(call_id)}`
}

/** The run of a result, and a function that tests whether a call of that run returned it. Undefined if `id` is not a valid id. */
export function parseResultId(id: string): { run_id: string; isOf(call_id: string): boolean } | undefined {
	const [run_id = '', part = '', ...rest] = id.split(':')
	if (!isName(run_id) || !PART.test(part) || rest.length > 0) return undefined
	return { run_id, isOf: (call_id) => callPart(call_id) === part }
}

/**
 * A part of a stored result: `limit` UTF-16 units from `offset` on, and one more if the part would split a character. Undefined
 * if the result is not stored: it is unknown, was deleted, or was not abridged, so that the run's journal has all of it.
 */
export async function readResult(
	store: Pick<Store, 'get'>,
	uid: string,
	result_id: string,
	{ offset, limit }: { offset: number; limit: number },
): Promise<TextPart | undefined> {
	const [run_id = '', part = ''] = result_id.split(':')
	const pieceAt = async (at: number): Promise<ResultPiece | undefined> =>
		(await store.get<ResultPiece>(pieceKey(uid, run_id, part, at)))?.value
	const first = await pieceAt(0)
	if (!first) return undefined
	const { total } = first
	let text = ''
	let at = Math.floor(Math.min(offset, total) / PIECE)
	for (let piece = at === 0 ? first : await pieceAt(at); piece && text.length < limit; piece = await pieceAt(++at)) {
		const from = Math.max(0, offset - piece.at)
		const end = from + limit - text.length
		text += piece.text.slice(from, isInside(piece.text, end) ? end + 1 : end)
	}
	const end = offset + text.length
	return { text: text.toWellFormed(), total, next_offset: end < total ? end : null }
}

/** All stored results of a run. */
export function resultsKey(uid: string, run_id: string): Key {
	return [agentScope(uid), 'results', run_id]
}

function pieceKey(uid: string, run_id: string, part: string, at: number): Key {
	return [...resultsKey(uid, run_id), part, String(at).padStart(4, '0')]
}

/** Model servers choose the ids of calls, which may be long and contain any characters. */
function callPart(call_id: string): string {
	if (PART.test(call_id)) return call_id
	return hash('sha256', call_id).slice(0, 32)
}

/** No piece splits a character, so a piece may be one UTF-16 unit longer. */
function piecesOf(text: string): ResultPiece[] {
	const pieces: ResultPiece[] = []
	for (let at = 0; at < text.length; at += pieces.at(-1)?.text.length ?? 0) {
		const end = (pieces.length + 1) * PIECE
		const last = isInside(text, end) ? end + 1 : end
		pieces.push({ text: text.slice(at, last), at, total: text.length })
	}
	return pieces
}

/** Stored characters of the other results of the run. */
function storedBefore(log: RunLog, call_id: string): number {
	const others = unwritten.get(log)
	let sum = 0
	for (const step of log.journal.steps) {
		if (step.kind !== 'tool') continue
		others?.delete(step.call_id)
		sum += Math.min(step.size ?? 0, RESULT_LIMIT)
	}
	for (const [id, size] of others ?? []) if (id !== call_id) sum += size
	return sum
}

/** The first `length` UTF-16 units of a text, or one less to avoid splitting a character. */
function wholeStart(text: string, length: number): string {
	return text.slice(0, isInside(text, length) ? length - 1 : length)
}

/** The same from the end of a text. */
function wholeEnd(text: string, length: number): string {
	const from = text.length - length
	return text.slice(isInside(text, from) ? from + 1 : from)
}
