/**
 * The thread that indexes and searches, so that the main thread never blocks on it. All of its data is also in the store: the
 * thread may end at any time, and an evicted index is filled again.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { AgentIndex, similarityOf } from './agent-index.ts'
import { removeFiles } from './files.ts'
import type { IndexCall, IndexReply, IndexRequest, IndexSettings, Params, Result } from './protocol.ts'
import { hashTerms } from '../hashing.ts'
import { someTermsOf, termsOf } from '../words.ts'

/** Calls wait at most this long for background work. */
const SLICE_MS = 4

const port = parentPort
if (!port) throw new Error('this file is a thread of plugins/memory')
const { folder, index_mib } = workerData as IndexSettings
/** Least recently used first. */
const indexes = new Map<string, AgentIndex>()
let isWorking = false

type Handlers = { [C in IndexCall]: (params: Params<C>) => Result<C> | Promise<Result<C>> }

const handlers: Handlers = {
	begin: ({ uid, embedder }) => void indexes.set(uid, new AgentIndex(uid, embedder, folder)),
	fill({ uid, rows }) {
		const index = indexes.get(uid)
		for (const row of rows) index?.add(row)
	},
	ready({ uid }) {
		use(uid)?.ready()
		makeRoom(uid)
	},
	add({ uid, rows }) {
		const index = use(uid)
		for (const row of rows) index?.add(row)
		makeRoom(uid)
	},
	vectors({ uid, embedder, vectors }) {
		const index = use(uid)
		if (index?.embedder !== embedder) return
		for (const { id, vector } of vectors) index.setVector(id, vector)
		makeRoom(uid)
	},
	remove({ uid, ids }) {
		const index = use(uid)
		for (const id of ids) index?.remove(id)
		if (index?.isMostlyRemoved) evict(index)
	},
	search: ({ uid, query }) => use(uid)?.search(query) ?? null,
	async groups({ uid, ids, floor, most }) {
		const index = use(uid)
		if (!index) return null
		const steps = index.groups(ids, floor, most)
		for (let until = performance.now() + SLICE_MS; ;) {
			const { done, value } = steps.next()
			if (done) return value
			if (performance.now() < until) continue
			await turn()
			until = performance.now() + SLICE_MS
		}
	},
	// Never all zeros, which normalization in a client would turn into NaN.
	hash: ({ texts }) => texts.map((text) => hashTerms(someTermsOf(text))),
	similarity({ text, contents }) {
		const query = hashTerms(termsOf(text).terms)
		return contents.map((content) => {
			const vector = hashTerms(termsOf(content).terms)
			return similarityOf(query.reduce((sum, value, at) => sum + value * (vector[at] as number), 0))
		})
	},
	status: ({ uid }) => indexes.get(uid)?.status ?? null,
	drop({ uid, file }) {
		indexes.delete(uid)
		if (file) removeFiles(folder, uid)
	},
	close() {
		for (const index of indexes.values()) index.save()
		port.unref()
	},
}

port.on('message', (request: IndexRequest) => {
	void answer(request)
	work()
})

async function answer({ id, call, params }: IndexRequest): Promise<void> {
	const handler = handlers[call] as (params: unknown) => unknown
	try {
		const result = handler(params)
		// A synchronous result is sent at once: after an await, background work would run first.
		send({ id, result: result instanceof Promise ? await result : result })
	} catch (error) {
		send({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
	}
}

function send(reply: IndexReply): void {
	port?.postMessage(reply)
}

function use(uid: string): AgentIndex | undefined {
	const index = indexes.get(uid)
	if (!index) return undefined
	indexes.delete(uid)
	indexes.set(uid, index)
	return index
}

/** Evicts the least recently used indexes, but never the one in use. */
function makeRoom(inUse: string): void {
	let bytes = 0
	for (const index of indexes.values()) bytes += index.bytes
	for (const [uid, index] of indexes) {
		if (bytes <= index_mib * 1024 * 1024) return
		if (uid === inUse || !index.isReady) continue
		bytes -= index.bytes
		evict(index)
	}
}

function evict(index: AgentIndex): void {
	index.save()
	indexes.delete(index.uid)
	send({ evicted: index.uid })
}

/** Continues building graphs while there are any to build, handling messages in between. */
function work(): void {
	if (isWorking) return
	const busy = indexes.values().find((index) => index.work(SLICE_MS))
	if (!busy) return
	isWorking = true
	setImmediate(() => {
		isWorking = false
		work()
	})
}
