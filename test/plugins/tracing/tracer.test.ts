/** The way from an ended span to the collector, and what does not get through. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SpanKind } from '@opentelemetry/api'
import t from 'tap'
import type { Test } from 'tap'
import { openTracer } from '../../../plugins/tracing/tracer.ts'
import type { Tracer } from '../../../plugins/tracing/tracer.ts'
import { startCollector } from '../../support/collector.ts'
import type { TestCollector } from '../../support/collector.ts'

interface Opened {
	collector: TestCollector
	tracer: Tracer
	told: (string | null)[]
}

async function open(t: Test, { sample_ratio = 1, timeout_ms = 10_000 } = {}): Promise<Opened> {
	const collector = await startCollector()
	t.teardown(() => collector.stop())
	const told: (string | null)[] = []
	const tracer = openTracer({
		collector: { url: `${collector.url}/v1/traces`, headers: {}, resource: {}, delay_ms: 10, timeout_ms },
		version: '1',
		sample_ratio,
		trouble: (message) => void told.push(message),
	})
	return { collector, tracer, told }
}

/** Spans of one trace each; ids as of runs. */
function make(tracer: Tracer, count: number): void {
	for (let n = 1; n <= count; n++) {
		const trace = `01990000${'0'.repeat(8)}8000${(n * 2_654_435).toString(16).padStart(12, '0')}`
		tracer.begin({ name: 'x', kind: SpanKind.INTERNAL, at: n, trace, attributes: {} }).end(n + 1)
	}
}

void t.test('what waits has a bound, and what is beyond it is counted', async (t) => {
	const { collector, tracer, told } = await open(t, { timeout_ms: 300 })
	collector.answer = 'silent'
	make(tracer, 10_000)
	const { dropped } = tracer.stats()
	t.ok(dropped > 5_000 && dropped < 10_000, `${dropped} at once`)
	await tracer[Symbol.asyncDispose]()
	t.equal(tracer.stats().sent, 0)
	t.ok(told.length <= 1, 'and told of once')
	make(tracer, 1)
	t.pass('nobody minds a span that comes later')
})

void t.test('all that is left goes out in the end', async (t) => {
	const { collector, tracer, told } = await open(t)
	make(tracer, 1_200)
	await tracer[Symbol.asyncDispose]()
	t.strictSame(tracer.stats(), { sent: 1_200, dropped: 0 })
	t.equal(new Set(collector.spans.map(({ id }) => id)).size, 1_200)
	t.strictSame(told, [])
})

void t.test('a share of the traces', async (t) => {
	const { collector, tracer } = await open(t, { sample_ratio: 0.25 })
	make(tracer, 2_000)
	await tracer[Symbol.asyncDispose]()
	t.ok(collector.spans.length > 200 && collector.spans.length < 900, String(collector.spans.length))
})

void t.test('a collector whose answer never ends is hung up on, and counted as none', async (t) => {
	let open = 0
	const server = createServer((request, response) => {
		request.resume()
		response.writeHead(200)
		const drops = setInterval(() => response.write(' '), 20)
		response.on('close', () => clearInterval(drops))
	}).listen(0, '127.0.0.1')
	server.on('connection', (socket) => {
		open++
		socket.on('close', () => open--)
	})
	await once(server, 'listening')
	t.teardown(() => {
		server.closeAllConnections()
		server.close()
	})
	const { port } = server.address() as AddressInfo
	const told = Promise.withResolvers<string | null>()
	const collector = {
		url: `http://127.0.0.1:${port}/v1/traces`,
		headers: {},
		resource: {},
		delay_ms: 10,
		timeout_ms: 50,
	}
	const tracer = openTracer({ collector, version: '1', sample_ratio: 1, trouble: told.resolve })
	make(tracer, 100)
	// Which of the two limits is met first depends on the machine.
	t.match(await told.promise, /^spans cannot be delivered: (?:the collector did not answer in time|Request timed out)/)
	t.strictSame(tracer.stats(), { sent: 0, dropped: 100 })
	await tracer[Symbol.asyncDispose]()
	while (open > 0) await new Promise((resolve) => setTimeout(resolve, 5))
	t.pass('no connection is left')
})
