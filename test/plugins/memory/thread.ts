/** The index thread by itself, and memories to fill it with. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HASHING } from '../../../plugins/memory/hashing.ts'
import type { IndexStatus, VectorRow } from '../../../plugins/memory/search/protocol.ts'
import { indexThread } from '../../../plugins/memory/search/thread.ts'
import type { IndexThread } from '../../../plugins/memory/search/thread.ts'
import { eventually } from '../../support/wait.ts'

/** Long enough for the graph of 100,000 memories. */
const GRAPH_LIMIT_MS = 600_000

export interface TestThread extends AsyncDisposable {
	thread: IndexThread
	folder: string
	/** Errors of the thread so far. */
	failures: unknown[]
}

export function openThread(folder = mkdtempSync(join(tmpdir(), 'svc-memory-')), index_mib = 512): TestThread {
	const failures: unknown[] = []
	const thread = indexThread({ folder, index_mib }, (error) => failures.push(error))
	return { thread, folder, failures, [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose]() }
}

export function removeFolder(folder: string): void {
	rmSync(folder, { recursive: true, force: true })
}

export async function fill({ thread }: TestThread, uid: string, rows: readonly VectorRow[]): Promise<void> {
	await thread.ask('begin', { uid, embedder: HASHING })
	for (let from = 0; from < rows.length; from += 500) {
		await thread.ask('fill', { uid, rows: rows.slice(from, from + 500) })
	}
	await thread.ask('ready', { uid })
}

/** Waits until all vectors are in the graph. */
export async function graphed({ thread }: TestThread, uid: string): Promise<IndexStatus> {
	const look = async (): Promise<IndexStatus> => {
		const status = await thread.ask('status', { uid })
		if (!status) throw new Error(`there is no index of ${uid}`)
		return status
	}
	return eventually(look, ({ in_graph, vectors }) => in_graph === vectors, GRAPH_LIMIT_MS)
}

const people = ['Maya', 'Tom', 'Priya', 'Ines', 'Jonas', 'Lea', 'Hugo', 'Camille', 'Marco', 'Giulia', 'Andres', 'Lucia']
const deeds = ['bought', 'lost', 'repaired', 'painted', 'described', 'ordered', 'forgot', 'borrowed', 'cleaned', 'sold']
const kinds = ['red', 'broken', 'wooden', 'new', 'tiny', 'expensive', 'famous', 'heavy', 'quiet', 'foreign']
const things = [
	'bicycle',
	'piano',
	'window',
	'passport',
	'garden',
	'ticket',
	'camera',
	'novel',
	'kettle',
	'ladder',
	'map',
]
const places = ['Lisbon', 'the office', 'Graz', 'the harbour', 'Nantes', 'school', 'Oslo', 'the cellar', 'Torino']
const whens = ['in May', 'on Monday', 'last winter', 'before lunch', 'at night', 'in 2019', 'after the meeting']

/** Different sentences, the same ones at each call. */
export function sentences(count: number): string[] {
	let seed = 1
	const pick = (words: readonly string[]): string => {
		seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
		return words[(seed >>> 8) % words.length] as string
	}
	const clause = (): string => `${pick(people)} ${pick(deeds)} the ${pick(kinds)} ${pick(things)}`
	return Array.from(
		{ length: count },
		(_, n) => `${clause()} in ${pick(places)} ${pick(whens)} while ${clause()}. Note ${n}.`,
	)
}

export function rowsOf(contents: readonly string[]): VectorRow[] {
	return contents.map((content, at) => ({ id: `memory-${at}`, content, tags: [], at: at * 3_600_001 }))
}
