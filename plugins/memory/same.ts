/**
 * Which memory says the same, or the same with another value. Two records an agent's text: one by its words, so that the same
 * fact is one memory, and one by its words without its numbers, so that "the rent is 950 euros" replaces "the rent is 900
 * euros". Only texts that differ in one number after three or more other words count as such: "invoice 17" and "invoice 18"
 * are two things.
 */
import { hash } from 'node:crypto'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Entry, Key, Op, Store } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
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

type Stores = Pick<Store, 'get' | 'list' | 'commit'>

/** Words before the first number that show that it is the value of something, not its name. */
const WORDS_BEFORE = 3
const BATCH = 45
const AGENTS = 10_000

/** Agents whose earlier memories are known to have these records. */
const prepared = new BoundedMap<string, true>(AGENTS)

export async function knownOf(store: Stores, uid: string, content: string): Promise<Known> {
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
export async function forgetSame(store: Stores, uid: string, { id, content }: MemoryRecord): Promise<Op[]> {
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

/** Version 0.1.0 wrote no such records: makes them once for each agent, about a second for 50,000 memories. */
export async function prepareSame(store: Stores, uid: string): Promise<void> {
	if (prepared.has(uid)) return
	const marker = keys.sameReady(uid)
	if (!(await store.get(marker))) {
		let ops: Op[] = []
		for await (const { value } of store.list<MemoryRecord>(keys.memories(uid))) {
			for (const key of keysOf(uid, value.content)) ops.push({ key, value: { id: value.id } satisfies SameRecord })
			if (ops.length >= BATCH * 2) {
				await store.commit(agentScope(uid), lastOfEach(ops))
				ops = []
			}
		}
		await store.commit(agentScope(uid), [...lastOfEach(ops), { key: marker, value: true }])
	}
	prepared.set(uid, true)
}

/** A commit writes a record once. */
function lastOfEach(ops: readonly Op[]): Op[] {
	return [...new Map(ops.map((op) => [op.key.join(' '), op])).values()]
}

function keysOf(uid: string, content: string): Key[] {
	const shape = shapeOf(content)
	return [sameKey(uid, content), ...(shape === undefined ? [] : [keys.same(uid, `~${sha256(shape)}`)])]
}

function sameKey(uid: string, content: string): Key {
	return keys.same(uid, sha256(plain(content)))
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

function sha256(text: string): string {
	return hash('sha256', text)
}
