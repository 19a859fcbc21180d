/** OpenTelemetry's SDK, for this plugin alone: nothing of it is registered for the process, so all of it can be given back. */
import http from 'node:http'
// oxlint-disable-next-line no-restricted-imports -- for the operator's own collector; no address from outside comes here
import https from 'node:https'
import { ROOT_CONTEXT, TraceFlags, trace } from '@opentelemetry/api'
import type { Attributes, Link, Span, SpanKind } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace'
import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import { within } from '../../core/deadline.ts'
import { messageOf } from '../../core/errors.ts'
import type { Collector } from './collector.ts'
import type { SpanCounts } from './contract.ts'
import { randomSpanId } from './ids.ts'
import { SEMANTIC_CONVENTIONS } from './names.ts'

export interface SpanStart {
	name: string
	kind: SpanKind
	/** Milliseconds since 1970. */
	at: number
	trace: string
	/** Default: a new one. */
	id?: string
	/** The span above, in the same trace. */
	parent?: string
	links?: Link[]
	attributes: Attributes
}

export interface Tracer extends AsyncDisposable {
	begin(start: SpanStart): Span
	stats(): SpanCounts
}

export interface TracerOptions {
	collector: Collector
	version: string
	sample_ratio: number
	/** Why spans cannot be delivered; null once they can. Called where that changes. */
	trouble: (message: string | null) => void
}

/** Ended spans that wait for the collector, those on their way included. */
const WAITING_LIMIT = 4_096
const BATCH = 512
/** The exporter's own limit is for a silence: an answer that comes drop by drop would never reach it. */
const GRACE_MS = 500
/** Of what a collector says. */
const REASON_CHARACTERS = 200
/** For what waits when the plugin is released. */
const FLUSH_MS = 2_000
/** Characters of an attribute. */
const VALUE_LIMIT = 16 * 1024
const EVENTS_LIMIT = 64

export function openTracer({ collector, version, sample_ratio, trouble }: TracerOptions): Tracer {
	const { url, headers, timeout_ms, resource } = collector
	// A batch comes every few seconds at most, and what is not kept need not be given back.
	const connections = new (url.startsWith('https:') ? https : http).Agent({ keepAlive: false })
	const hangUp = (): void => connections.destroy()
	// Its own way out, not the guarded one: the address is the operator's, and mostly one of this machine or network.
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
		// By the trace alone: all runs of a trace are in, or none.
		sampler: new TraceIdRatioBasedSampler(sample_ratio),
		idGenerator: { generateTraceId: () => next.trace, generateSpanId: () => next.span },
		spanLimits: { attributeValueLengthLimit: VALUE_LIMIT, eventCountLimit: EVENTS_LIMIT },
		spanProcessors: [counted.processor],
	})
	const tracer = provider.getTracer('agent-gateway', version, {
		schemaUrl: `https://opentelemetry.io/schemas/${SEMANTIC_CONVENTIONS}`,
	})
	return {
		begin({ name, kind, at, trace: traceId, id = randomSpanId(), parent, links = [], attributes }) {
			next.trace = traceId
			next.span = id
			const above = { traceId, spanId: parent ?? '', traceFlags: TraceFlags.SAMPLED }
			const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, above)
			return tracer.startSpan(name, { kind, startTime: at, links, attributes }, context)
		},
		stats: counted.stats,
		async [Symbol.asyncDispose]() {
			// A collector that is gone is not waited for.
			await within(FLUSH_MS, 'the collector', provider.shutdown()).catch(() => {})
			hangUp()
		},
	}
}

/** Bounds what waits, counts what becomes of it, and tells where deliveries begin or cease to fail. */
function countDelivery(
	exporter: SpanExporter,
	{ delay_ms, timeout_ms }: Collector,
	hangUp: () => void,
	trouble: (message: string | null) => void,
): { processor: SpanProcessor; stats: () => SpanCounts } {
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
				// A batch that failed is counted, and told of here: the SDK shall not tell of it as well.
				settle({ code: 0 })
			}
			const timer = setTimeout(() => {
				end('the collector does not come to an end with its answer')
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
		// Ours is over before.
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
