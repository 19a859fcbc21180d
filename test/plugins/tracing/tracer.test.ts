/** Delivery of ended spans to a collector. */
import { createServer } from 'node:http'
import { SpanKind } from '@opentelemetry/api'
import t from 'tap'
import type { Test } from 'tap'
import { openTracer } from '../../../plugins/tracing/tracer.ts'
import type { Tracer } from '../../../plugins/tracing/tracer.ts'
import { startCollector } from '../../support/collector.ts'
import type { TestCollector } from '../../support/collector.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { eventually } from '../../support/wait.ts'

interface Opened {
	collector: TestCollector
	tracer: Tracer
	/** Reported errors; null: the end of one. */
	reports: (string | null)[]
}

async function open(t: Test, { sample_ratio = 1, timeout_ms = 10_000 } = {}): Promise<Opened> {
	const collector = await startCollector()
	t.teardown(() => collector.stop())
	const reports: (string | null)[] = []
	const tracer = openTracer({
		collector: { url: `${collector.url}/v1/traces`, headers: {}, resource: {}, delay_ms: 10, timeout_ms },
		version: '1',
		sample_ratio,
		trouble: (message) => void reports.push(message),
	})
	return { collector, tracer, reports }
}

/** Ends spans, each of its own trace with an id like that of a run. */
function endSpans(tracer: Tracer, count: number): void {
	for (let n = 1; n <= count; n++) {
		const trace = `01990000${'0'.repeat(8)}8000${(n * 2_654_435).toString(16).padStart(12, '0')}`
		tracer.begin({ name: 'x', kind: SpanKind.INTERNAL, at: n, trace, attributes: {} }).end(n + 1)
	}
}

void t.test('the queue of spans has a bound, and dropped spans are counted', async (t) => {
	const { collector, tracer, reports } = await open(t, { timeout_ms: 300 })
	collector.answer = 'silent'
	endSpans(tracer, 10_000)
	const { dropped } = tracer.stats()
	t.ok(dropped > 5_000 && dropped < 10_000, `${dropped} dropped at once`)
	await tracer[Symbol.asyncDispose]()
	t.equal(tracer.stats().sent, 0)
	t.ok(reports.length <= 1, 'the error is reported at most once')
	endSpans(tracer, 1)
	t.pass('a span after the end is ignored')
})

void t.test('closing the tracer delivers all queued spans', async (t) => {
	const { collector, tracer, reports } = await open(t)
	endSpans(tracer, 1_200)
	await tracer[Symbol.asyncDispose]()
	t.strictSame(tracer.stats(), { sent: 1_200, dropped: 0 })
	t.equal(new Set(collector.spans.map(({ id }) => id)).size, 1_200)
	t.strictSame(reports, [])
})

void t.test('sample_ratio selects a share of the traces', async (t) => {
	const { collector, tracer } = await open(t, { sample_ratio: 0.25 })
	endSpans(tracer, 2_000)
	await tracer[Symbol.asyncDispose]()
	t.ok(collector.spans.length > 200 && collector.spans.length < 900, String(collector.spans.length))
})

void t.test('a response that never ends is aborted, and its spans count as dropped', async (t) => {
	let open = 0
	const server = createServer((request, response) => {
		request.resume()
		response.writeHead(200)
		const drops = setInterval(() => response.write(' '), 20)
		response.on('close', () => clearInterval(drops))
	})
	server.on('connection', (socket) => {
		open++
		socket.on('close', () => open--)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const reported = Promise.withResolvers<string | null>()
	const collector = {
		url: `${url}/v1/traces`,
		headers: {},
		resource: {},
		delay_ms: 10,
		timeout_ms: 50,
	}
	const tracer = openTracer({ collector, version: '1', sample_ratio: 1, trouble: reported.resolve })
	endSpans(tracer, 100)
	// The machine determines which of the two limits is reached first.
	t.match(
		await reported.promise,
		/^spans cannot be delivered: (?:the collector did not answer in time|Request timed out)/,
	)
	t.strictSame(tracer.stats(), { sent: 0, dropped: 100 })
	await tracer[Symbol.asyncDispose]()
	await eventually(() => open === 0)
	t.pass('no connection is left')
})
