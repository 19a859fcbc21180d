/** Reads a response: the events of a stream, or the whole body that a server sent instead. */
import type { Transform } from 'node:stream'
import { StringDecoder } from 'node:string_decoder'
import { createBrotliDecompress, createUnzip } from 'node:zlib'
import { createParser } from 'eventsource-parser'
import type { EventSourceParser } from 'eventsource-parser'
import type { Dispatcher } from 'undici'
import { isObject } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { ConnectionFailure, namedError, refusalOf } from './failures.ts'
import { ModelError } from './provider.ts'

export interface ResponseContent {
	/** Its content type; empty if the server gave none. */
	type: string
	/** Absent after a stream of events: parsed JSON, or text if it is not JSON. */
	body?: unknown
}

/** The beginning of a stream of events, which may be a comment, and the number of characters that decide it. */
const FIELD = /^(data|event|id|retry|):/
const FIELD_CHARACTERS = 'retry:'.length
/** Limit of one response, compressed and unpacked: the longest allowed answer, in chunks of 250 bytes for four characters each. */
const RESPONSE_LIMIT_BYTES = 64 * 1024 * 1024
/** The connection is reused only if the rest after the last event is within these limits. */
const REST_LIMIT_BYTES = 64 * 1024
const REST_LIMIT_MS = 1_000

type IncomingHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/**
 * The handler of one request. It connects the socket directly to the parser, since this path takes most of a run's CPU time.
 * Detects a stream by its content: some servers do not stream, or send a stream with another content type.
 */
export class ResponseHandler implements Dispatcher.DispatchHandler {
	readonly #content = Promise.withResolvers<ResponseContent>()
	readonly #signal: AbortSignal
	readonly #take: (event: unknown) => void
	readonly #decoder = new StringDecoder('utf8')
	#controller: Dispatcher.DispatchController | undefined
	/** Of the response; 0 until it begins. */
	#status = 0
	#headers: IncomingHeaders = {}
	#unpacker: Transform | undefined
	#parser: Pick<EventSourceParser, 'feed'> | undefined
	#text = ''
	#bytes = 0
	/** Bytes of a compressed response, as sent. */
	#packed = 0
	/** The content type is not that of a stream, but the first characters do not exclude one. */
	#mayBeStream = true
	#isOver = false
	#restTimer: NodeJS.Timeout | undefined

	constructor(signal: AbortSignal, take: (event: unknown) => void) {
		this.#signal = signal
		this.#take = take
		if (signal.aborted) this.#abort()
		else signal.addEventListener('abort', this.#abort, { once: true })
	}

	/** Settles at the end of the response, or of its events. */
	get content(): Promise<ResponseContent> {
		return this.#content.promise
	}

	onRequestStart(controller: Dispatcher.DispatchController): void {
		this.#controller = controller
		if (this.#isOver) controller.abort(new Error('the call is over'))
	}

	onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHeaders): void {
		if (status < 200) return
		this.#status = status
		this.#headers = headers
		const encoding = this.#header('content-encoding') ?? 'identity'
		if (encoding !== 'identity') this.#unpack(encoding)
		if (this.#isSuccess && this.#type.includes('event-stream')) this.#parser = this.#openParser()
		if (this.#isSuccess && this.#type.includes('ndjson')) this.#parser = this.#openLines()
	}

	onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
		if (!this.#unpacker || this.#isOver) return this.#receive(part)
		// Data that waits to be unpacked is in memory, and may unpack to nothing.
		this.#packed += part.length
		if (this.#packed > RESPONSE_LIMIT_BYTES) this.fail(tooLong())
		else this.#unpacker.write(part)
	}

	onResponseEnd(): void {
		clearTimeout(this.#restTimer)
		if (this.#unpacker && !this.#isOver) this.#unpacker.end()
		else this.#end()
	}

	onResponseError(_controller: unknown, error: Error): void {
		clearTimeout(this.#restTimer)
		this.fail(this.#status === 0 ? new ConnectionFailure(error) : error)
	}

	/** Ends the call, if it is not over. */
	fail(error: unknown): void {
		if (this.#isOver) return
		this.#over()
		const why = isInvalid(error)
			? new ModelError('model_rejected', `the request cannot be sent: ${error.message}`)
			: error
		this.#content.reject(why)
		this.#hangUp()
	}

	#receive(part: Buffer): void {
		this.#bytes += part.length
		if (this.#isOver) {
			if (this.#bytes > REST_LIMIT_BYTES) this.#hangUp()
			return
		}
		try {
			if (this.#bytes > RESPONSE_LIMIT_BYTES) throw tooLong()
			this.#read(this.#decoder.write(part))
		} catch (error) {
			this.fail(error)
		}
	}

	#end(): void {
		if (this.#isOver) return
		try {
			this.#read(this.#decoder.end())
			// Some servers omit the blank line after the last event, or the end of the last line.
			this.#parser?.feed('\n\n')
			if (!this.#isSuccess) this.fail(refusalOf(this.#status, this.#text, { get: (name) => this.#header(name) }))
			else this.#finish(this.#parser ? {} : { body: jsonIn(this.#text) ?? this.#text })
		} catch (error) {
			this.fail(error)
		}
	}

	#finish(content: Omit<ResponseContent, 'type'>): void {
		if (this.#isOver) return
		this.#over()
		this.#content.resolve({ type: this.#type, ...content })
	}

	#over(): void {
		this.#isOver = true
		this.#unpacker?.destroy()
		this.#signal.removeEventListener('abort', this.#abort)
	}

	/** Compression is not requested, but some servers compress anyway. */
	#unpack(encoding: string): void {
		this.#unpacker = encoding === 'br' ? createBrotliDecompress() : createUnzip()
		this.#unpacker.on('data', (part: Buffer) => this.#receive(part))
		this.#unpacker.on('end', () => this.#end())
		this.#unpacker.on('error', (error) => this.fail(error))
	}

	readonly #abort = (): void => this.fail(this.#signal.reason)

	#hangUp(): void {
		if (this.#controller && !this.#controller.aborted) this.#controller.abort(new Error('the call is over'))
	}

	get #isSuccess(): boolean {
		return this.#status < 300
	}

	get #type(): string {
		return this.#header('content-type') ?? ''
	}

	#header(name: string): string | null {
		return [this.#headers[name]].flat()[0] ?? null
	}

	#read(text: string): void {
		if (this.#parser) return this.#parser.feed(text)
		this.#text += text
		if (!this.#isSuccess || !this.#mayBeStream) return
		// Leading blanks are dropped at once: to check them again with each chunk would take quadratic time.
		this.#text = this.#text.trimStart()
		if (!FIELD.test(this.#text)) {
			this.#mayBeStream = this.#text.length < FIELD_CHARACTERS
			return
		}
		this.#parser = this.#openParser()
		this.#parser.feed(this.#text)
	}

	/** For NDJSON: one JSON text per line. */
	#openLines(): Pick<EventSourceParser, 'feed'> {
		// A line that arrives in many chunks is joined once, at its end.
		const parts: string[] = []
		return {
			feed: (text) => {
				const [first = '', ...lines] = text.split('\n')
				parts.push(first)
				for (const next of lines) {
					const line = parts.splice(0).join('')
					if (line.trim() !== '' && !this.#isOver) this.#take(JSON.parse(line))
					parts.push(next)
				}
			},
		}
	}

	#openParser(): EventSourceParser {
		return createParser({
			onEvent: ({ event, data }) => {
				if (event === 'error') this.#takeError(data)
				else for (const text of textsIn(data)) this.#takeText(text)
			},
		})
	}

	#takeError(data: string): void {
		if (this.#isOver) return
		const body = jsonIn(data)
		// The dialect throws if it recognises the error.
		if (isObject(body)) this.#take(body)
		throw namedError(body ?? data)
	}

	#takeText(text: string): void {
		if (this.#isOver || text.trim() === '') return
		if (!text.startsWith('[DONE]')) return this.#take(JSON.parse(text))
		this.#restTimer = setTimeout(() => this.#hangUp(), REST_LIMIT_MS)
		this.#bytes = 0
		this.#finish({})
	}
}

/** The data of an event, or of several if a proxy removed the blank lines between them. */
function textsIn(data: string): string[] {
	return data.includes('\n') && jsonIn(data) === undefined ? data.split('\n') : [data]
}

function tooLong(): ModelError {
	return new ModelError('model_malformed', `the server sent more than ${RESPONSE_LIMIT_BYTES} bytes`)
}

/** An error of undici about an invalid request: its message names the header without its value. */
function isInvalid(error: unknown): error is Error {
	const cause = error instanceof ConnectionFailure ? error.cause : error
	return (cause as { code?: unknown } | undefined)?.code === 'UND_ERR_INVALID_ARG'
}
