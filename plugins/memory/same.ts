/**
 * Which memory says the same, or the same with another value. Two records an agent's text: one by its words, so that the same
 * fact is one memory, and one by its words without its numbers, so that "the rent is 950 euros" replaces "the rent is 900
 * euros". Only texts that differ in one number after three or more other words count as such: "invoice 17" and "invoice 18"
 * are two things.
 */
import { hash } from 'node:crypto'
import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'
import { keys } from './records.ts'
import type { MemoryRecord } from './records.ts'

export interface SameRecord {
	id: string
}

/** What is known about a text, with the writes that make a new memory the one that is found by it. */
export interface Known {
	/** Says the same. */
	same: Entry<MemoryRecord> | undefined
	/** Says the same with another number. */
	older: Entry<MemoryRecord> | undefined
	/** For a new memory of this id. */
	opsFor(id: string): Op[]
}

/** Words before the first number that show that it is the value of something, not its name. */
const WORDS_BEFORE = 3

export async function knownOf(store: Pick<Store, 'get'>, uid: string, content: string): Promise<Known> {
	const found = await Promise.all(
		keysOf(uid, content).map(async (key) => {
			const entry = await store.get<SameRecord>(key)
			const memory = entry && (await store.get<MemoryRecord>(keys.memory(uid, entry.value.id)))
			return { key, entry, memory }
		}),
	)
	const [same, shaped] = found
	return {
		same: same?.memory,
		older: shaped?.memory && differInOne(shaped.memory.value.content, content) ? shaped.memory : undefined,
		opsFor: (id) =>
			found.map(({ key, entry }): Op => ({ key, value: { id } satisfies SameRecord, expect: entry?.rev ?? null })),
	}
}

/** The writes that delete the records of a text, where they lead to this memory. */
export async function forgetSame(store: Pick<Store, 'get'>, uid: string, { id, content }: MemoryRecord): Promise<Op[]> {
	const entries = await Promise.all(keysOf(uid, content).map((key) => store.get<SameRecord>(key)))
	return entries.flatMap((entry) => (entry?.value.id === id ? [{ key: entry.key, value: undefined }] : []))
}

export function saysTheSame(one: string, other: string): boolean {
	return plain(one) === plain(other)
}

/** The write after which a text leads to this memory, or to none. */
export function leadsTo(uid: string, content: string, id: string | undefined): Op {
	return { key: sameKey(uid, content), value: id === undefined ? undefined : ({ id } satisfies SameRecord) }
}

/** Under which a text is found: one or two keys. */
export function keysOf(uid: string, content: string): Key[] {
	const shape = shapeOf(content)
	return [sameKey(uid, content), ...(shape === undefined ? [] : [keys.same(uid, `~${hash('sha256', shape)}`)])]
}

function sameKey(uid: string, content: string): Key {
	return keys.same(uid, hash('sha256', plain(content)))
}

/** Spaces and the form of characters say nothing; upper case may. */
function plain(text: string): string {
	return text.normalize('NFC').replaceAll(/\s+/g, ' ').trim()
}

const hasDigit = /\p{Nd}/u

/** The text without its numbers; undefined where it has none that is a value. */
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
