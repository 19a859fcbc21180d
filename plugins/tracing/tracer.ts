/** OpenTelemetry's SDK, used by this plugin only: nothing is registered globally, so everything can be released. */
import { randomBytes } from 'node:crypto'
import http from 'node:http'
// oxlint-disable-next-line no-restricted-imports -- only for the operator's collector, never for an address from outside
import https from 'node:https'
import { ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api'
import type { Attributes, Link, Span, SpanKind } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import { within } from '../../core/util/deadline.ts'
import { messageOf } from '../../core/errors.ts'
import type { Collector } from './collector.ts'
import { SEMANTIC_CONVENTIONS } from './names.ts'

export interface SpanStart {
	name: string
	kind: SpanKind
	/** Milliseconds since 1970. */
	at: number
	trace: string
	/** Default: a new one. */
	id?: string
	/** The parent span, in the same trace. */
	parent?: string
	links?: Link[]
	attributes: Attributes
}

export type Tracer = ReturnType<typeof openTracer>

export interface TracerOptions {
	collector: Collector
	version: string
	sample_ratio: number
	/** Called when deliveries start to fail, with the reason, and with null when they succeed again. */
	trouble: (message: string | null) => void
}

/** Limit of ended spans that wait for the collector, including those being sent. */
const WAITING_LIMIT = 4_096
const BATCH = 512
/** Added to the exporter's own limit, which is an idle timeout that a slow response would never reach. */
const GRACE_MS = 500
/** Limit of characters of a collector's message. */
const REASON_CHARACTERS = 200
/** Time for sending waiting spans when the plugin is released. */
const FLUSH_MS = 2_000
/** Limit of characters of an attribute. */
const VALUE_LIMIT = 16 * 1024
const EVENTS_LIMIT = 64

export function openTracer({ collector, version, sample_ratio, trouble }: TracerOptions) {
	const { url, headers, timeout_ms, resource } = collector
	// Batches are at most one every few seconds, and without keep-alive there are no connections to close.
	const connections = new (url.startsWith('https:') ? https : http).Agent({ keepAlive: false })
	const hangUp = (): void => connections.destroy()
	// The exporter's own HTTP client, not the guarded one: the operator's collector is usually at a private address.
	const exporter = new OTLPTraceExporter({
		url,
		headers,
		timeoutMillis: timeout_ms,
		httpAgentOptions: () => connections,
	})
	const counted = countDelivery(exporter, collector, hangUp, trouble)
	const next = { trace: '', span: '' }
	const provider = new TracerProvider({
		resource: resourceFromAttributes(resource),
		// Depends on the trace id only: all runs of a trace are sampled, or none.
		sampler: new TraceIdRatioBasedSampler(sample_ratio),
		idGenerator: { generateTraceId: () => next.trace, generateSpanId: () => next.span },
		spanLimits: { attributeValueLengthLimit: VALUE_LIMIT, eventCountLimit: EVENTS_LIMIT },
		spanProcessors: [counted.processor],
	})
	const tracer = provider.getTracer('agent-gateway', version, {
		schemaUrl: `https://opentelemetry.io/schemas/${SEMANTIC_CONVENTIONS}`,
	})
	return {
		begin({ name, kind, at, trace: traceId, id, parent, links = [], attributes }: SpanStart): Span {
			next.trace = traceId
			next.span = id ?? randomBytes(8).toString('hex')
			const parentSpan = { traceId, spanId: parent ?? '', traceFlags: TraceFlags.SAMPLED }
			const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parentSpan)
			return tracer.startSpan(name, { kind, startTime: at, links, attributes }, context)
		},
		stats: counted.stats,
		async [Symbol.asyncDispose](): Promise<void> {
			// Do not wait for an unreachable collector.
			await within(FLUSH_MS, 'the collector', provider.shutdown()).catch(() => {})
			hangUp()
		},
	}
}

/** Bounds the waiting spans, counts the results, and reports when deliveries start or stop failing. */
function countDelivery(
	exporter: SpanExporter,
	{ delay_ms, timeout_ms }: Collector,
	hangUp: () => void,
	trouble: (message: string | null) => void,
): { processor: SpanProcessor; stats: () => { sent: number; dropped: number } } {
	/** `dropped`: the collector did not accept them, or too many were waiting. */
	const counts = { sent: 0, dropped: 0 }
	let waiting = 0
	let failing = false
	const counting: SpanExporter = {
		export(spans, settle) {
			let isOver = false
			const end = (error: string | null): void => {
				if (isOver) return
				isOver = true
				clearTimeout(timer)
				const sent = error === null
				waiting -= spans.length
				counts[sent ? 'sent' : 'dropped'] += spans.length
				if (sent === failing) trouble(sent ? null : `spans cannot be delivered: ${error.slice(0, REASON_CHARACTERS)}`)
				failing = !sent
				// A failed batch is counted and reported here, so the SDK need not report it.
				settle({ code: 0 })
			}
			const timer = setTimeout(() => {
				end('the collector did not answer in time')
				hangUp()
			}, timeout_ms + GRACE_MS)
			exporter.export(spans, ({ code, error }) => end(code === 0 ? null : messageOf(error)))
		},
		shutdown: () => exporter.shutdown(),
	}
	const batches = new BatchSpanProcessor({
		exporter: counting,
		maxQueueSize: WAITING_LIMIT,
		maxExportBatchSize: BATCH,
		scheduledDelayMillis: delay_ms,
		// Longer than the timeout above, which therefore ends first.
		exportTimeoutMillis: timeout_ms + 2 * GRACE_MS,
	})
	const processor: SpanProcessor = {
		onStart: (span, context) => batches.onStart(span, context),
		onEnd(span: ReadableSpan) {
			if (waiting >= WAITING_LIMIT) return void counts.dropped++
			waiting++
			batches.onEnd(span)
		},
		forceFlush: () => batches.forceFlush(),
		shutdown: () => batches.shutdown(),
	}
	return { processor, stats: () => ({ ...counts }) }
}
