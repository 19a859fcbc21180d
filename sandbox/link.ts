/** The worker's side of one run. */
import { threadId } from 'node:worker_threads'
import { Fault, fromWire } from '../core/errors.ts'
import type { Calls, Method, RunOutcome, SentRequest, ToMain, ToWorker, WorkerEvent } from '../core/protocol.ts'
import { mergeText } from './merge-text.ts'

export interface Link {
	/** Aborts when the main thread ends the run, or is gone. */
	readonly signal: AbortSignal
	emit(event: WorkerEvent): void
	/** A piece of the unfinished answer. Pieces in quick succession are merged; the order with other messages is kept. */
	stream(content: string): void
	sent(request: SentRequest): void
	/** Settles once the main thread has made and journalled the call. Rejects with its Fault, or `stopped` once the signal aborts. */
	call<M extends Method>(method: M, params: Calls[M]['params']): Promise<Calls[M]['result']>
}

export interface OpenLink extends Link {
	/** Handles a message of the main thread. */
	receive(message: ToWorker): void
	/** Posts the remaining messages, the outcome last. */
	end(outcome: RunOutcome | null): void
}

/** Posts `hello` at once. */
export function openLink(post: (message: ToMain) => void): OpenLink {
	const controller = new AbortController()
	const { signal } = controller
	const waiting = new Map<number, PromiseWithResolvers<unknown>>()
	let lastId = 0
	const pieces = mergeText((content) => post({ kind: 'stream', content }))

	const abort = (reason: string): void => {
		if (signal.aborted) return
		controller.abort(reason)
		for (const { reject } of waiting.values()) reject(new Fault('stopped', reason))
		waiting.clear()
	}

	post({ kind: 'hello', thread: threadId })
	return {
		signal,
		emit(event) {
			pieces.flush()
			post({ kind: 'event', event })
		},
		stream: pieces.add,
		sent: (request) => post({ kind: 'sent', request }),
		call<M extends Method>(method: M, params: Calls[M]['params']): Promise<Calls[M]['result']> {
			if (signal.aborted) return Promise.reject(new Fault('stopped', String(signal.reason)))
			pieces.flush()
			const id = ++lastId
			const reply = Promise.withResolvers<unknown>()
			post({ kind: 'call', id, method, params } as ToMain)
			waiting.set(id, reply)
			return reply.promise as Promise<Calls[M]['result']>
		},
		receive(message) {
			if (message.kind === 'abort') return abort(message.reason)
			const call = waiting.get(message.id)
			waiting.delete(message.id)
			if ('error' in message) call?.reject(fromWire(message.error))
			else call?.resolve(message.value)
		},
		end(outcome) {
			pieces.flush()
			post({ kind: 'outcome', outcome })
		},
	}
}
