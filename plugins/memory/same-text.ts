/**
 * Finds the memory with the same text as a new one, or with the same text but another number. A memory has up to two text
 * records: one by its words, so that the same fact is one memory, and one by its words without numbers, so that "the rent is
 * 950 euros" replaces "the rent is 900 euros". Only texts that differ in one number after three or more other words count as
 * the same: "invoice 17" and "invoice 18" are different things.
 */
import { hash } from 'node:crypto'
import type { Key, Op, Store } from '../../core/store/ports.ts'
import { keys } from './records.ts'
import type { MemoryRecord } from './records.ts'

export interface TextRecord {
	id: string
}

/** From this many words before it, the first number counts as a value, not as part of a name. */
const WORDS_BEFORE = 3

/**
 * `same`: the memory with the same text. `older`: the one with the same text but another number. `opsFor`: the operations after which
 * the text leads to a new memory with this id.
 */
export async function findText(store: Pick<Store, 'get'>, uid: string, content: string) {
	const found = await Promise.all(
		keysOf(uid, content).map(async (key) => {
			const entry = await store.get<TextRecord>(key)
			const memory = entry && (await store.get<MemoryRecord>(keys.memory(uid, entry.value.id)))
			return { key, entry, memory }
		}),
	)
	const [same, shaped] = found
	return {
		same: same?.memory,
		older: shaped?.memory && differInOne(shaped.memory.value.content, content) ? shaped.memory : undefined,
		opsFor: (id: string): Op[] =>
			found.map(({ key, entry }): Op => ({ key, value: { id } satisfies TextRecord, expect: entry?.rev ?? null })),
	}
}

/** The operations that delete the text records of a memory, unless they lead to another one. */
export async function forgetTexts(
	store: Pick<Store, 'get'>,
	uid: string,
	{ id, content }: MemoryRecord,
): Promise<Op[]> {
	const entries = await Promise.all(keysOf(uid, content).map((key) => store.get<TextRecord>(key)))
	return entries.flatMap((entry) => (entry?.value.id === id ? [{ key: entry.key, value: undefined }] : []))
}

export function isSameText(one: string, other: string): boolean {
	return plain(one) === plain(other)
}

/** The operation after which a text leads to this memory, or to none. */
export function textOp(uid: string, content: string, id: string | undefined): Op {
	return { key: sameKey(uid, content), value: id === undefined ? undefined : ({ id } satisfies TextRecord) }
}

/** The one or two keys of the records of a text. */
export function keysOf(uid: string, content: string): Key[] {
	const shape = shapeOf(content)
	return [sameKey(uid, content), ...(shape === undefined ? [] : [keys.same(uid, `~${hash('sha256', shape)}`)])]
}

function sameKey(uid: string, content: string): Key {
	return keys.same(uid, hash('sha256', plain(content)))
}

/** Ignores spacing and the Unicode form of characters, but not case, which may carry meaning. */
function plain(text: string): string {
	return text.normalize('NFC').replaceAll(/\s+/g, ' ').trim()
}

const hasDigit = /\p{Nd}/u

/** The text with `#` for each number; undefined if it has no number that is a value. */
function shapeOf(content: string): string | undefined {
	const words = plain(content).split(' ')
	const first = words.findIndex((word) => hasDigit.test(word))
	if (first < WORDS_BEFORE) return undefined
	return words.map((word) => (hasDigit.test(word) ? '#' : word)).join(' ')
}

function differInOne(one: string, other: string): boolean {
	const words = plain(other).split(' ')
	return (
		plain(one)
			.split(' ')
			.filter((word, at) => word !== words[at]).length === 1
	)
}
