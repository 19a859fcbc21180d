import t from 'tap'
import { countEvents } from '../../../plugins/metrics/counts.ts'
import { expose } from '../../../plugins/metrics/exposition.ts'
import { countRequests } from '../../../plugins/metrics/requests.ts'
import { counter, histogram, SERIES_LIMIT } from '../../../plugins/metrics/metric.ts'

void t.test('a metric has a bound, beyond which samples count as "other"', (t) => {
	const calls = counter('calls_total', 'Calls.', ['name', 'how'])
	for (let n = 0; n < SERIES_LIMIT + 500; n++) calls.add([`name-${n}`, 'well'])
	calls.add(['name-1', 'well'], 2)
	const samples = calls.samples()
	t.equal(samples.length, SERIES_LIMIT + 1)
	t.match(samples.at(-1), { labels: { name: 'other', how: 'other' }, value: 500 })
	t.match(samples[1], { value: 3 })
	t.end()
})

void t.test('10,000 requests to unknown routes make one series', (t) => {
	const { count, metrics } = countRequests()
	for (let n = 0; n < 10_000; n++) count({ method: `odd-${n}`, route: null, status: 404, ms: n })
	t.strictSame(metrics[0]?.samples(), [{ labels: { method: 'other', route: 'none', status: '404' }, value: 10_000 }])
	t.end()
})

void t.test('a histogram has cumulative buckets, a sum and a count', (t) => {
	const times = histogram('wait_seconds', 'Waits.', [0.1, 1])
	for (const seconds of [0.05, 0.1, 0.5, 30]) times.observe([], seconds)
	t.strictSame(
		times.samples().map(({ labels, suffix, value }) => [suffix, labels.le, value]),
		[
			['_bucket', '0.1', 2],
			['_bucket', '1', 3],
			['_bucket', '+Inf', 4],
			['_sum', undefined, 30.65],
			['_count', undefined, 4],
		],
	)
	t.end()
})

void t.test('labels are escaped, so that they cannot forge a line', async (t) => {
	const odd = counter('odd_total', 'Odd\nhelp.', ['name'])
	odd.add(['a"b\\c\nsvc_runs_total 99'])
	const { text } = await expose([odd], '')
	t.equal(
		text,
		'# HELP odd_total Odd\\nhelp.\n# TYPE odd_total counter\nodd_total{name="a\\"b\\\\c\\nsvc_runs_total 99"} 1\n',
	)
})

void t.test('the duration of a run excludes pauses, and third-party text is not a label', async (t) => {
	const records = new Map([['late', { trigger: 'webhook', active_ms: 4_000 }]])
	const { handle, metrics } = countEvents(async (run_id) => records.get(run_id) ?? Promise.reject(new Error('gone')))
	let second = 0
	const handleEvent = (run_id: string, event_type: string, payload = {}): void => {
		const timestamp = new Date(++second * 1000).toISOString()
		handle({ event_id: '', timestamp, agent_id: 'ada', run_id, sequence: 1, event_type, payload })
	}
	handleEvent('one', 'run.started', { trigger: 'api' })
	handleEvent('one', 'run.paused')
	second += 1_000
	handleEvent('one', 'run.resumed', { reason: 'answer' })
	handleEvent('one', 'run.completed')
	handleEvent('two', 'run.started', { trigger: 'Odd "trigger" {}' })
	handleEvent('two', 'run.stopped')
	handleEvent('late', 'run.resumed', { reason: 'answer' })
	handleEvent('late', 'run.completed')
	handleEvent('gone', 'run.stopped')
	handleEvent('two', 'primitive.result', { primitive: 'Not a\nname' })
	handleEvent('two', 'model.response', { usage: { input_tokens: 0, output_tokens: 0 } })
	handleEvent('two', 'skill.completed', { skill: 'x' })
	handleEvent('two', 'skill.failed', { skill: 'x', code: 'sandbox_timeout' })
	handleEvent('two', 'skill.failed', { skill: 'x', code: 'sandbox_busy' })
	handleEvent('two', 'mcp.result', { server: 's', tool: 'x' })
	handleEvent('two', 'webhook.accepted', { slug: 'ci' })
	handleEvent('two', 'webhook.rejected', { slug: 'ci', code: 'invalid_request' })
	handleEvent('two', 'webhook.rejected', { slug: 'ci', code: 'signature_invalid', untold: 3 })
	await new Promise((resolve) => setImmediate(resolve))
	const of = (name: string) => metrics.find((one) => one.name === name)?.samples() ?? []
	t.strictSame(
		of('svc_runs_total').map(({ labels }) => `${labels.outcome} ${labels.trigger}`),
		['completed api', 'stopped other', 'completed webhook', 'stopped unknown'],
	)
	t.equal(of('svc_run_duration_seconds').find(({ suffix }) => suffix === '_sum')?.value, 2 + 1 + 5)
	t.strictSame(
		of('svc_webhook_deliveries_total').map(({ labels, value }) => [labels.valid, value]),
		[
			['true', 2],
			['false', 4],
		],
		'rejections that an event adds as untold are counted',
	)
	t.strictSame(
		of('svc_tool_calls_total').map(({ labels: { kind, tool, outcome }, value }) => [kind, tool, outcome, value]),
		[
			['primitive', '', 'ok', 1],
			['skill', '', 'ok', 1],
			['skill', '', 'failed', 2],
			['mcp', '', 'ok', 1],
		],
	)
	t.match(of('svc_sandbox_kills_total'), [{ labels: { reason: 'timeout' }, value: 1 }])
	t.equal(of('svc_sandbox_kills_total').length, 1)
})

void t.test('a run.stopped event without the tokens of the last answer does not decrease counters', async (t) => {
	const { handle, metrics } = countEvents(async () => ({ trigger: 'api', active_ms: 0 }))
	const handleEvent = (event_type: string, payload: Record<string, unknown>): void =>
		handle({ event_id: '', timestamp: '', agent_id: 'ada', run_id: 'one', sequence: 1, event_type, payload })
	handleEvent('run.started', { trigger: 'api' })
	handleEvent('model.request', { provider: 'main' })
	handleEvent('model.response', { provider: 'main', usage: { input_tokens: 8, output_tokens: 4 } })
	handleEvent('model.request', { provider: 'main' })
	handleEvent('run.stopped', { usage: { input_tokens: 1, output_tokens: 1 } })
	const tokens = metrics.find(({ name }) => name === 'svc_model_tokens_total')?.samples() ?? []
	t.strictSame(
		tokens.map(({ value }) => value),
		[8, 4],
	)
})
