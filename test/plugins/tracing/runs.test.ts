/** Spans from events of runs that a gateway rarely emits. */
import { trace } from '@opentelemetry/api'
import t from 'tap'
import type { EventEnvelope } from '../../../core/store/ports.ts'
import { collectorOf } from '../../../plugins/tracing/collector.ts'
import { traceRuns } from '../../../plugins/tracing/runs.ts'
import type { KnownRun } from '../../../plugins/tracing/runs.ts'
import type { SpanStart } from '../../../plugins/tracing/tracer.ts'

interface RecordedSpan extends SpanStart {
	ended?: number
	attributes: Record<string, unknown>
}

/** Traces events with a tracer that records its spans. */
function record(options: Partial<Parameters<typeof traceRuns>[0]> = {}) {
	const spans: RecordedSpan[] = []
	let ids = 0
	const runs = traceRuns({
		content: false,
		failed(error) {
			throw error
		},
		recordOf: () => Promise.reject(new Error('there is no record')),
		...options,
		tracer: {
			begin(start) {
				const recorded: RecordedSpan = { ...start, attributes: { ...start.attributes } }
				spans.push(recorded)
				const spanId = start.id ?? String(++ids).padStart(16, '0')
				const span = trace.wrapSpanContext({ traceId: start.trace, spanId, traceFlags: 1 })
				span.setAttribute = (name, value) => {
					recorded.attributes[name] = value
					return span
				}
				span.end = (at) => void (recorded.ended = Number(at))
				return span
			},
		},
	})
	let clock = 0
	const handle = (run_id: string, event_type: string, payload: Record<string, unknown> = {}): void => {
		const timestamp = new Date(++clock).toISOString()
		const event: EventEnvelope = { event_id: '', timestamp, agent_id: 'ada', run_id, sequence: 1, event_type, payload }
		runs.handle(event)
	}
	return { spans, runs, handle }
}

const id = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

void t.test('the span of an unknown tool has no text of the model', (t) => {
	const { spans, handle } = record()
	handle(id(1), 'run.started')
	const fail = (primitive: string) =>
		handle(id(1), 'primitive.failed', { primitive, code: 'tool_unknown', call_id: 'c' })
	fail('no.such')
	for (const text of ['You said: my word', 'x'.repeat(50_000), '']) fail(text)
	const [, ...tools] = spans.map(({ name, attributes }) => [name, attributes['gen_ai.tool.name']])
	const unknown = ['execute_tool unknown', 'unknown']
	t.strictSame(tools, [['execute_tool no.such', 'no.such'], unknown, unknown, unknown])
	t.end()
})

void t.test('above the limit of open runs, the span of the least recently active run ends', (t) => {
	const { spans, handle } = record({ limit: 3 })
	for (const n of [1, 2, 3]) handle(id(n), 'run.started')
	handle(id(1), 'run.paused')
	handle(id(1), 'run.resumed', { reason: 'answer' })
	handle(id(4), 'run.started')
	t.strictSame(
		spans.map(({ ended, attributes }) => [ended, attributes['svc.run.outcome']]),
		[
			[undefined, undefined],
			[6, 'cut'],
			[undefined, undefined],
			[undefined, undefined],
		],
	)
	t.end()
})

void t.test('the first events of a run wait for its record and keep their order', async (t) => {
	const known: KnownRun = {
		agent: 'ada',
		conversation: 'c',
		trigger: 'subagent',
		started_at: 'then',
		parent: { run_id: id(1), depth: 2 },
		family: id(9),
	}
	const { spans, handle } = record({ recordOf: async () => known })
	handle(id(2), 'model.request', { provider: 'lab', model: 'm', step: 2 })
	handle(id(2), 'model.response', { model: 'm', finish_reason: 'stop', usage: { input_tokens: 1, output_tokens: 2 } })
	handle(id(2), 'run.completed', {})
	t.strictSame(spans, [])
	await settled()
	const trace = id(9).replaceAll('-', '')
	t.match(spans, [
		{ name: 'invoke_agent ada', trace, parent: id(1).replaceAll('-', '').slice(16), ended: 3 },
		{ name: 'chat m', trace, ended: 2 },
	])
	t.match(spans[0]?.links, [{ context: { traceId: trace, spanId: id(2).replaceAll('-', '').slice(16) } }])
	t.end()
})

void t.test('events of unknown runs make no span', async (t) => {
	const { spans, runs, handle } = record()
	handle(id(1), 'run.queued')
	handle(id(1), 'run.stopped') // its record is gone
	handle(id(2), 'message.assistant', { content: 'late' })
	handle(id(3), 'primitive.result', { call_id: 'x' })
	await settled()
	t.strictSame(spans, [])
	handle(id(4), 'run.started', { parent_run_id: id(1) })
	runs.end()
	await settled()
	t.strictSame(spans, [], 'events after the end make no span')
	t.end()
})

void t.test('the collector comes from the file, then from the environment', (t) => {
	const urlOf = (endpoint: string | null, env: NodeJS.ProcessEnv = {}) => collectorOf({ endpoint }, env, '1')?.url
	t.equal(urlOf(null), undefined)
	t.equal(urlOf('http://a:4318'), 'http://a:4318/v1/traces')
	t.equal(urlOf('http://a:4318/v1/traces'), 'http://a:4318/v1/traces')
	t.equal(urlOf('https://a/otel/'), 'https://a/otel/v1/traces')
	const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://b:1', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://c:1/x' }
	t.equal(urlOf(null, env), 'http://c:1/x')
	t.equal(urlOf('http://a:1', env), 'http://a:1/v1/traces', 'the file takes precedence over the environment')
	t.equal(urlOf(null, { OTEL_EXPORTER_OTLP_ENDPOINT: '' }), undefined, 'an empty variable is ignored')
	t.equal(urlOf(null, { ...env, OTEL_TRACES_EXPORTER: 'none' }), undefined)
	for (const invalid of ['ftp://a', 'http://', 'unix:/x'])
		t.throws(() => urlOf(invalid), { code: 'config_invalid' }, invalid)
	t.match(
		collectorOf(
			{ endpoint: null },
			{ ...env, OTEL_EXPORTER_OTLP_HEADERS: 'a=1, broken ,b=%zz,c=x=y', OTEL_BSP_SCHEDULE_DELAY: '-1' },
			'1',
		),
		{ headers: { a: '1', b: '%zz', c: 'x=y' }, delay_ms: 2_000, resource: { 'service.name': 'agent-gateway' } },
	)
	t.end()
})
