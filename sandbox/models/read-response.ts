/** Reads a response: the events of a stream, or the whole body that a server sent in place of one. */
import { createParser } from 'eventsource-parser'
import { byteCount } from './http.ts'

/** Characters within which the first field of a stream must appear. Chunks from the network are much smaller. */
const SNIFFED = 256 * 1024

export type ResponseContent =
	/** The JSON of each event. Throws SyntaxError for one that is not JSON. Ends at `[DONE]`. */
	| { kind: 'events'; events: AsyncIterable<unknown> }
	/** Parsed JSON; text if it is not JSON. */
	| { kind: 'whole'; body: unknown }

/** Decides by the content: some servers do not stream, or send a stream with another content type. Throws ModelError for too long a body. */
export async function readResponse(response: Response): Promise<ResponseContent> {
	if (!response.body) return { kind: 'whole', body: '' }
	const texts = pieces(response.body)
	if (/event-stream/.test(response.headers.get('content-type') ?? '')) return { kind: 'events', events: events(texts) }
	let text = ''
	for (let next = await texts.next(); !next.done; next = await texts.next()) {
		text += next.value
		const begins = text.length < SNIFFED && /^\s*(data|event|id|retry|):/.test(text)
		if (begins) return { kind: 'events', events: events(after(text, texts)) }
	}
	try {
		return { kind: 'whole', body: JSON.parse(text) }
	} catch {
		return { kind: 'whole', body: text }
	}
}

async function* after(text: string, texts: AsyncIterable<string>): AsyncGenerator<string> {
	yield text
	yield* texts
}

async function* pieces(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
	const count = byteCount()
	const decoder = new TextDecoder()
	for await (const part of body) {
		count(part)
		yield decoder.decode(part, { stream: true })
	}
}

async function* events(texts: AsyncIterable<string>): AsyncGenerator<unknown> {
	let found: string[] = []
	const parser = createParser({ onEvent: ({ data }) => found.push(data) })
	const take = function* (): Generator<unknown, boolean> {
		for (const data of found) {
			if (data.startsWith('[DONE]')) return true
			if (data.trim() !== '') yield JSON.parse(data)
		}
		found = []
		return false
	}
	for await (const text of texts) {
		parser.feed(text)
		if (yield* take()) return
	}
	// Some leave out the blank line after the last event.
	parser.feed('\n\n')
	yield* take()
}
