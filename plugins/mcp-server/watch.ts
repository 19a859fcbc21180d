import type { EventEnvelope } from '../../core/store/ports.ts'
import type {} from '../runs/contract.ts'
import type { McpCall, McpContext } from './call.ts'

/** A client that hears nothing for a minute gives up by default. */
const STILL_THERE_MS = 10_000

/** Listens to one run for one call: says when there is something to look at, and tells the client how far it is. */
export class Watch implements Disposable {
	readonly #call: Pick<McpCall, 'signal' | 'progress'>
	readonly #stops: (() => void)[]
	readonly #beat: NodeJS.Timeout
	readonly #began = performance.now()
	#news = Promise.withResolvers<void>()

	constructor({ events, use }: McpContext, run_id: string, call: Pick<McpCall, 'signal' | 'progress'>) {
		this.#call = call
		this.#stops = [
			events.subscribe({ run_id }, ({ event }) => this.#hear(event)),
			use('runs').watchAsked(run_id, (asked) => this.#hearBelow(asked !== null)),
		]
		this.#beat = setInterval(() => call.progress(`at work for ${seconds(this.#began)} s`), STILL_THERE_MS)
		call.signal.addEventListener('abort', this.#wake, { once: true })
		if (call.signal.aborted) this.#wake()
	}

	/** Settles with the next news, those that came since it settled last included, or after `ms`. */
	async next(ms: number): Promise<void> {
		let timer: NodeJS.Timeout | undefined
		const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)))
		await Promise.race([this.#news.promise, late])
		clearTimeout(timer)
		if (!this.#call.signal.aborted) this.#news = Promise.withResolvers()
	}

	[Symbol.dispose](): void {
		clearInterval(this.#beat)
		for (const stop of this.#stops) stop()
		this.#call.signal.removeEventListener('abort', this.#wake)
	}

	readonly #wake = (): void => this.#news.resolve()

	#hearBelow(asks: boolean): void {
		this.#wake()
		if (asks) this.#call.progress('a sub-agent asks a question')
	}

	#hear({ event_type, payload }: EventEnvelope): void {
		if (/^(run|question)\./.test(event_type)) this.#wake()
		const text = inWords(event_type, payload)
		if (text !== undefined) this.#call.progress(text)
	}
}

/** What an event means to somebody who waits; undefined where that is nothing. */
function inWords(event_type: string, payload: Record<string, unknown>): string | undefined {
	switch (event_type) {
		case 'run.queued':
			return 'waits for an earlier run of the conversation'
		case 'model.request':
			return 'thinks'
		case 'model.retry':
		case 'model.fallback':
			return 'the model did not answer; asks again'
		case 'question.asked':
			return 'asks a question'
		default:
			return typeof payload.arguments === 'string' ? `calls ${toolIn(payload) ?? event_type}` : undefined
	}
}

/** Calls of tools look alike, whatever their events are named. */
function toolIn({ skill, primitive, server, tool }: Record<string, unknown>): string | undefined {
	if (typeof server === 'string' && typeof tool === 'string') return `${tool} of ${server}`
	return [skill, primitive, tool].find((name) => typeof name === 'string')
}

function seconds(since: number): number {
	return Math.round((performance.now() - since) / 1000)
}
