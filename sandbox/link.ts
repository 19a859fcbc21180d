/** The worker's side of one run. */
import { threadId } from 'node:worker_threads'
import { Fault, fromWire } from '../core/errors.ts'
import type { Calls, Method, RunOutcome, SentRequest, ToMain, ToWorker, WorkerEvent } from '../core/protocol.ts'

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

/** How long a piece waits for further ones: too short to notice, long enough to save most messages. */
const WINDOW_MS = 30
/** This many characters are passed on without waiting for the end of the window. */
const SIZE_LIMIT = 16 * 1024

/** Passes on the first piece at once, and merges those that follow it closely, every 30 ms. `flush` passes on waiting text at once. */
function mergeText(passOn: (text: string) => void): { add(text: string): void; flush(): void } {
	let merged = ''
	let timer: NodeJS.Timeout | undefined

	const flush = (): void => {
		clearTimeout(timer)
		timer = undefined
		if (merged === '') return
		const text = merged
		merged = ''
		passOn(text)
	}
	const windowEnds = (): void => {
		timer = undefined
		if (merged === '') return
		flush()
		timer = setTimeout(windowEnds, WINDOW_MS)
	}

	return {
		flush,
		add(text) {
			merged += text
			if (timer !== undefined && merged.length < SIZE_LIMIT) return
			flush()
			timer = setTimeout(windowEnds, WINDOW_MS)
		},
	}
}
