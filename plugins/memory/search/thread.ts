/** The main thread's side of the index thread: starts it on demand, sends it requests, and restarts it. */
import { Worker } from 'node:worker_threads'
import { Fault } from '../../../core/errors.ts'
import { programOf } from '../../../core/util/own-code.ts'
import { tryLater } from '../../shared/try-later.ts'
import type { IndexCall, IndexReply, IndexRequest, IndexSettings, Params, Result } from './protocol.ts'

/** Heap of the thread in addition to the indexes. */
const HEAP_MIB = 512
const MAX_PENDING = 10_000

export interface IndexThread extends AsyncDisposable {
	/** Throws `unavailable` if the thread ended meanwhile; the next request starts another one. */
	ask<C extends IndexCall>(call: C, params: Params<C>): Promise<Result<C>>
	/** Called with the uid of an index that the thread evicted, or `all` if it ended, before any other request is sent. */
	onLost(listener: (uid: string) => void): void
}

export function indexThread(settings: IndexSettings, failed: (error: unknown) => void): IndexThread {
	let worker: Worker | undefined
	let lost: (uid: string) => void = () => {}
	let last = 0
	let isClosed = false
	const pending = new Map<number, PromiseWithResolvers<never>>()

	const start = (): Worker => {
		const made = new Worker(programOf(new URL('./worker.ts', import.meta.url)), {
			workerData: settings,
			env: {},
			execArgv: [], // the options of the process do not apply to this thread
			resourceLimits: { maxOldGenerationSizeMb: settings.index_mib + HEAP_MIB },
		})
		made.unref()
		made.on('message', (reply: IndexReply) => {
			if ('evicted' in reply) return lost(reply.evicted)
			const call = pending.get(reply.id)
			pending.delete(reply.id)
			if ('error' in reply) call?.reject(new Error(`the index thread: ${reply.error}`))
			else call?.resolve(reply.result as never)
		})
		made.on('error', failed)
		made.on('exit', () => {
			if (worker === made) worker = undefined
			lost('all')
			const fault = new Fault('unavailable', 'the search index was restarted; try again')
			for (const { reject } of pending.values()) reject(fault)
			pending.clear()
		})
		return made
	}

	const ask = async <C extends IndexCall>(call: C, params: Params<C>): Promise<Result<C>> => {
		if (pending.size >= MAX_PENDING)
			throw tryLater('queue_full', `the search index already has ${MAX_PENDING} pending requests; try again later`, 1)
		if (isClosed) throw new Fault('unavailable', 'the search index is closed')
		worker ??= start()
		const id = ++last
		const request = Promise.withResolvers<never>()
		pending.set(id, request)
		worker.postMessage({ id, call, params } satisfies IndexRequest)
		return request.promise
	}

	return {
		ask,
		onLost: (listener) => void (lost = listener),
		async [Symbol.asyncDispose]() {
			const closed = worker && ask('close', null).catch(failed)
			isClosed = true
			await closed
			await worker?.terminate()
		},
	}
}
