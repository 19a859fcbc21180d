/** The main thread's side of the index thread: starts it on demand, sends it requests, and restarts it. */
import { Worker } from 'node:worker_threads'
import { Fault } from '../../../core/errors.ts'
import { programOf } from '../../../core/util/own-code.ts'
import { tryLater } from '../../shared/try-later.ts'
import type { IndexCall, IndexReply, IndexRequest, IndexSettings, Params, Result } from './protocol.ts'

/** In addition to the indexes. */
const HEAP_MIB = 512
const MAX_WAITING = 10_000

export interface IndexThread extends AsyncDisposable {
	/** Throws `unavailable` if the thread ended meanwhile; the next request starts another one. */
	ask<C extends IndexCall>(call: C, params: Params<C>): Promise<Result<C>>
	/** Called for indexes that the thread evicted; `all` if it ended. Called before any other request is sent. */
	onLost(listener: (uid: string) => void): void
}

interface PendingCall {
	resolve: (result: never) => void
	reject: (error: Error) => void
}

export function indexThread(settings: IndexSettings, failed: (error: unknown) => void): IndexThread {
	let worker: Worker | undefined
	let lost: (uid: string) => void = () => {}
	let last = 0
	let isClosed = false
	const waiting = new Map<number, PendingCall>()

	const start = (): Worker => {
		const made = new Worker(programOf(new URL('./worker.ts', import.meta.url)), {
			workerData: settings,
			env: {},
			execArgv: [], // what the process was started with is not meant for this thread
			resourceLimits: { maxOldGenerationSizeMb: settings.index_mib + HEAP_MIB },
		})
		made.unref()
		made.on('message', (reply: IndexReply) => {
			if ('evicted' in reply) return lost(reply.evicted)
			const one = waiting.get(reply.id)
			waiting.delete(reply.id)
			if ('error' in reply) one?.reject(new Error(`the index thread: ${reply.error}`))
			else one?.resolve(reply.result as never)
		})
		made.on('error', failed)
		made.on('exit', () => {
			if (worker === made) worker = undefined
			lost('all')
			const fault = new Fault('unavailable', 'the search index was restarted; try again')
			for (const one of waiting.values()) one.reject(fault)
			waiting.clear()
		})
		return made
	}

	const ask = <C extends IndexCall>(call: C, params: Params<C>): Promise<Result<C>> => {
		if (waiting.size >= MAX_WAITING)
			throw tryLater('queue_full', `${MAX_WAITING} requests wait for the search index already; try again later`, 1)
		if (isClosed) throw new Fault('unavailable', 'the search index is closed')
		worker ??= start()
		const id = ++last
		return new Promise<Result<C>>((resolve, reject) => {
			waiting.set(id, { resolve, reject })
			worker?.postMessage({ id, call, params } satisfies IndexRequest)
		})
	}

	return {
		ask: async (call, params) => ask(call, params),
		onLost: (listener) => void (lost = listener),
		async [Symbol.asyncDispose]() {
			const closed = worker && ask('close', null).catch(failed)
			isClosed = true
			await closed
			await worker?.terminate()
		},
	}
}
