/** The main thread's side of the sentence encoder. Its thread starts with the first text and ends when idle. */
import { addAbortListener } from 'node:events'
import { Worker } from 'node:worker_threads'
import { Fault, messageOf } from '../../../core/errors.ts'
import { programOf } from '../../../core/util/own-code.ts'
import { normalise } from '../hashing.ts'

export interface EncodeRequest {
	id: number
	texts: string[]
}

export type EncodeReply = { id: number; vectors: Float32Array[] } | { id: number; error: string }

/** Only the beginning of a longer text is encoded: the time grows with the length, and the model averages over it. */
const TEXT_CHARACTERS = 2_000
const MAX_PENDING = 1_000
const HEAP_MIB = 512
const IDLE_MS = 10 * 60_000

/** `folder`: of the installed packages. */
export function encoderIn(folder: string) {
	let worker: Worker | undefined
	let idle: NodeJS.Timeout | undefined
	let last = 0
	const pending = new Map<number, PromiseWithResolvers<Float32Array[]>>()

	const stop = async (): Promise<void> => {
		const ending = worker
		worker = undefined
		await ending?.terminate()
	}

	const start = (): Worker => {
		const made = new Worker(programOf(new URL('./worker.ts', import.meta.url)), {
			workerData: { folder },
			env: {},
			execArgv: [], // the options of the process do not apply to this thread
			resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
		})
		made.unref()
		let reason = 'its thread ended'
		made.on('message', (reply: EncodeReply) => {
			const request = pending.get(reply.id)
			pending.delete(reply.id)
			if ('error' in reply) request?.reject(failed(reply.error))
			else request?.resolve(reply.vectors.map(normalise))
			stopWhenIdle()
		})
		made.on('error', (error) => (reason = messageOf(error)))
		made.on('exit', () => {
			if (worker === made) worker = undefined
			if (worker) return
			for (const { reject } of pending.values()) reject(failed(reason))
			pending.clear()
		})
		return made
	}

	const stopWhenIdle = (): void => {
		clearTimeout(idle)
		if (pending.size === 0) idle = setTimeout(() => void stop(), IDLE_MS).unref()
	}

	return {
		/** Vectors of length 1, one for each text. Throws `embedding_failed`. A request that is aborted may still be computed. */
		async embed(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]> {
			if (pending.size >= MAX_PENDING) throw failed(`it already has ${MAX_PENDING} pending requests`)
			if (signal.aborted) throw failed('the request was cancelled')
			clearTimeout(idle)
			worker ??= start()
			const id = ++last
			const request = Promise.withResolvers<Float32Array[]>()
			pending.set(id, request)
			const sent = texts.map((text) => text.slice(0, TEXT_CHARACTERS).toWellFormed())
			worker.postMessage({ id, texts: sent } satisfies EncodeRequest)
			using _ = addAbortListener(signal, () => request.reject(failed('the request was cancelled or took too long')))
			return await request.promise
		},
		async [Symbol.asyncDispose](): Promise<void> {
			clearTimeout(idle)
			await stop()
		},
	}
}

function failed(why: string): Fault {
	return new Fault('embedding_failed', `the sentence encoder returned no embeddings: ${why}`)
}
