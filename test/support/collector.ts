/** An OpenTelemetry collector: accepts OTLP over HTTP as JSON, and answers as a test specifies. */
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { listenOnLoopback } from './loopback.ts'
import { openWatch } from './wait.ts'

export interface TestSpan {
	trace: string
	id: string
	/** Empty for a root span. */
	parent: string
	name: string
	/** 1 internal, 3 client. */
	kind: number
	/** Nanoseconds since 1970. */
	start: bigint
	end: bigint
	attributes: Record<string, unknown>
	events: { name: string; attributes: Record<string, unknown> }[]
	links: { trace: string; id: string }[]
	/** 0 unset, 2 error. */
	status: number
}

export interface TestCollector {
	/** For `tracing.endpoint`. */
	url: string
	/** Spans of all accepted batches. */
	spans: TestSpan[]
	/** Attributes of the sender, from the latest batch. */
	resource: Record<string, unknown>
	requests: { path: string; headers: IncomingHttpHeaders }[]
	/** Status of the next answers; `silent`: no answer. */
	answer: number | 'silent'
	/** Waits for the first span for which `wanted` returns true; it may have arrived before. */
	span(wanted: (span: TestSpan) => boolean): Promise<TestSpan>
	stop(): Promise<void>
}

export async function startCollector(port = 0): Promise<TestCollector> {
	const watch = openWatch()
	const server = createServer((request, response) => {
		const parts: Buffer[] = []
		request.on('data', (part: Buffer) => parts.push(part))
		request.on('end', () => {
			collector.requests.push({ path: request.url ?? '', headers: request.headers })
			if (collector.answer === 'silent') return
			if (collector.answer === 200) accept(collector, JSON.parse(Buffer.concat(parts).toString()) as Batch)
			response.writeHead(collector.answer, { 'content-type': 'application/json' }).end('{}')
			watch.check()
		})
	})
	const { url, stop } = await listenOnLoopback(server, port)
	const collector: TestCollector = {
		url,
		spans: [],
		resource: {},
		requests: [],
		answer: 200,
		span(wanted) {
			const names = (): string => collector.spans.map(({ name }) => name).join(', ')
			return watch.until(
				() => collector.spans.find(wanted),
				() => `no such span; there are: ${names()}`,
			)
		},
		stop,
	}
	return collector
}

interface Attribute {
	key: string
	value: Record<string, unknown>
}

interface Batch {
	resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: WireSpan[] }[] }[]
}

interface WireSpan {
	traceId: string
	spanId: string
	parentSpanId?: string
	name: string
	kind: number
	startTimeUnixNano: string
	endTimeUnixNano: string
	attributes?: Attribute[]
	events?: { name: string; attributes?: Attribute[] }[]
	links?: { traceId: string; spanId: string }[]
	status?: { code?: number }
}

function accept(collector: TestCollector, { resourceSpans }: Batch): void {
	for (const { resource, scopeSpans } of resourceSpans) {
		collector.resource = valuesOf(resource.attributes)
		for (const { spans } of scopeSpans) collector.spans.push(...spans.map(spanOf))
	}
}

function spanOf(span: WireSpan): TestSpan {
	return {
		trace: span.traceId,
		id: span.spanId,
		parent: span.parentSpanId ?? '',
		name: span.name,
		kind: span.kind,
		start: BigInt(span.startTimeUnixNano),
		end: BigInt(span.endTimeUnixNano),
		attributes: valuesOf(span.attributes),
		events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: valuesOf(attributes) })),
		links: (span.links ?? []).map(({ traceId, spanId }) => ({ trace: traceId, id: spanId })),
		status: span.status?.code ?? 0,
	}
}

function valuesOf(attributes: Attribute[] = []): Record<string, unknown> {
	return Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))
}

function plain(value: Record<string, unknown>): unknown {
	if ('arrayValue' in value)
		return ((value.arrayValue as { values?: Record<string, unknown>[] }).values ?? []).map(plain)
	return 'intValue' in value ? Number(value.intValue) : Object.values(value)[0]
}
