import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import type { ModelAnswer, NewEvent, ToolSpec } from '../../core/protocol.ts'
import { Fault } from '../../core/errors.ts'
import type { ModelIo } from '../../sandbox/ask-model.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import { openai } from '../../sandbox/models/openai.ts'
import { bodyOf } from '../../sandbox/models/openai.ts'
import type { ModelFailure, ModelReply, ModelRequest } from '../../sandbox/models/provider.ts'
import { askModels } from '../../sandbox/models/retry.ts'
import { retryAfter } from '../../sandbox/models/failures.ts'
import { startModelServer } from '../support/model-server.ts'
import type { Reply } from '../support/model-server.ts'
import { startRawServer, startStream } from '../support/raw-server.ts'
import { listenOnLoopback } from '../support/loopback.ts'

const tools: ToolSpec[] = [{ name: 'memory.stm_read', description: 'Reads.', parameters: { type: 'object' } }]

void t.test('an answer', async (t) => {
	void t.test('is streamed in pieces that add up to it, with the usage that the server reports', async (t) => {
		const usage = { prompt_tokens: 11, completion_tokens: 7 }
		const { url } = await aimock(t, { text: 'Hello there, my friend.', usage, chunkSize: 4 })
		const pieces: string[] = []
		t.strictSame(answered(await ask({ base_url: url }, { onText: (text) => pieces.push(text) })), {
			content: 'Hello there, my friend.',
			tool_calls: [],
			usage: { input_tokens: 11, output_tokens: 7 },
			provider: 'test',
			model: 'm-1',
			finish_reason: 'stop',
		})
		t.ok(pieces.length > 3)
		t.equal(pieces.join(''), 'Hello there, my friend.')
	})

	void t.test('has complete tool calls, in order, with the names of the tools', async (t) => {
		const { url } = await aimock(t, {
			text: 'I look.',
			tools: [
				{ name: 'memory_stm_read', arguments: { key: 'a longer value than one chunk holds' }, id: 'c1' },
				{ name: 'no_such_tool', arguments: '{"broken":', id: 'c2' },
			],
			chunkSize: 5,
		})
		const answer = answered(await ask({ base_url: url }))
		t.equal(answer.content, 'I look.')
		t.strictSame(answer.tool_calls, [
			{ id: 'c1', name: 'memory.stm_read', arguments: '{"key":"a longer value than one chunk holds"}' },
			{ id: 'c2', name: 'no_such_tool', arguments: '{"broken":' },
		])
	})

	void t.test('has estimated usage if the server reports none', async (t) => {
		const { url } = await startRawServer(t, (response) =>
			stream(response, [chunk({ content: 'x'.repeat(40) }), chunk({}, 'stop')]),
		)
		const { usage } = answered(await ask({ base_url: url }, { prompt: 'y'.repeat(400), tools: [] }))
		t.strictSame(usage, { input_tokens: 100, output_tokens: 10 })
	})

	void t.test('may have tool calls without an index, or with arguments as an object', async (t) => {
		const { url } = await startRawServer(t, (response) =>
			stream(response, [
				chunk({ tool_calls: [{ id: 'c1', function: { name: 'a', arguments: '{"n"' } }] }),
				chunk({ tool_calls: [{ function: { arguments: ':1}' } }] }),
				chunk({ tool_calls: [{ id: 'c2', function: { name: 'b', arguments: { n: 2 } } }] }),
				chunk({}, 'tool_calls'),
			]),
		)
		t.strictSame(answered(await ask({ base_url: url })).tool_calls, [
			{ id: 'c1', name: 'a', arguments: '{"n":1}' },
			{ id: 'c2', name: 'b', arguments: '{"n":2}' },
		])
	})

	void t.test('is complete after its finish_reason, even if the connection breaks then', async (t) => {
		const { url } = await startRawServer(t, (response) => {
			response.write(chunk({ content: 'All.' }))
			response.write(chunk({}, 'stop'), () => response.destroy())
		})
		t.equal(answered(await ask({ base_url: url })).content, 'All.')
	})
})

void t.test('a request', async (t) => {
	void t.test('contains the conversation, with tool names that servers accept', async (t) => {
		const { url, requests } = await aimock(t, 'Yes.')
		const request: ModelRequest = {
			system: 'Be brief.',
			turns: [
				{ role: 'user', content: 'Read.' },
				{
					role: 'assistant',
					content: '',
					tool_calls: [
						{ id: 'c1', name: 'memory.stm_read', arguments: '{"key":"a"}' },
						{ id: 'c2', name: 'memory.stm_read', arguments: '{"key":' },
					],
				},
				{ role: 'tool', call_id: 'c1', name: 'memory.stm_read', ok: true, content: '1' },
				{ role: 'tool', call_id: 'c2', name: 'memory.stm_read', ok: false, content: 'not JSON' },
			],
			tools,
		}
		await openai.ask(order({ base_url: url, params: { temperature: 0.5, max_tokens: 99 } }), request, io())
		const call = (id: string, args: string): object => ({
			id,
			type: 'function',
			function: { name: 'memory_stm_read', arguments: args },
		})
		t.match(requests()[0], {
			model: 'm-1',
			stream: true,
			stream_options: { include_usage: true },
			temperature: 0.5,
			max_tokens: 99,
			messages: [
				{ role: 'system', content: 'Be brief.' },
				{ role: 'user', content: 'Read.' },
				{ role: 'assistant', content: null, tool_calls: [call('c1', '{"key":"a"}'), call('c2', '{}')] },
				{ role: 'tool', tool_call_id: 'c1', content: '1' },
				{ role: 'tool', tool_call_id: 'c2', content: 'not JSON' },
			],
			tools: [
				{
					type: 'function',
					function: { name: 'memory_stm_read', description: 'Reads.', parameters: { type: 'object' } },
				},
			],
		})
	})

	void t.test('names the token limit as the server expects it', (t) => {
		const body = (base_url?: string): object =>
			bodyOf(
				{ ...order({ params: { max_tokens: 9 } }), ...(base_url && { base_url }) },
				{ system: null, turns: [], tools: [] },
			)
		t.match(body(), { max_completion_tokens: 9 })
		t.match(body('https://eu.api.openai.com/v1'), { max_completion_tokens: 9 })
		t.match(body('http://localhost:11434/v1'), { max_tokens: 9 })
		t.end()
	})

	void t.test('uses nothing from the environment', async (t) => {
		const wrong = {
			OPENAI_BASE_URL: 'http://127.0.0.1:9/v1',
			OPENAI_API_KEY: 'stray',
			OPENAI_ORG_ID: 'stray',
			OPENAI_PROJECT_ID: 'stray',
			OPENAI_ADMIN_KEY: 'stray',
		}
		Object.assign(process.env, wrong)
		t.teardown(() => {
			for (const name of Object.keys(wrong)) delete process.env[name]
		})
		const { url, requests } = await startRawServer(t, (response) =>
			stream(response, [chunk({ content: 'Hi.' }), chunk({}, 'stop')]),
		)
		await ask({ base_url: url, api_key: 'mine' })
		await ask({ base_url: url })
		const headers = requests.map((request) => request.headers)
		t.equal(headers[0]?.authorization, 'Bearer mine')
		t.equal(headers[1]?.authorization, undefined, 'a server that needs no key gets none')
		t.notMatch(JSON.stringify(headers), 'stray')
	})
})

void t.test('a failure', async (t) => {
	const cases: [name: string, reply: Reply, expected: Partial<ModelFailure>][] = [
		[
			'429',
			{ status: 429, message: 'slow down', retryAfter: 3 },
			failure('model_rate_limited', true, '429 slow down', 3_000),
		],
		['an exhausted quota', { status: 429, code: 'insufficient_quota' }, failure('model_rate_limited', false)],
		['400', { status: 400, message: 'bad' }, failure('model_rejected', false, '400 bad')],
		['401', { status: 401, message: 'bad key sk-my-key' }, failure('model_rejected', false, '401 bad key [redacted]')],
		['403', { status: 403 }, failure('model_rejected', false)],
		['404', { status: 404 }, failure('model_rejected', false)],
		['408', { status: 408 }, failure('model_unavailable', true)],
		['500', { status: 500, message: 'boom' }, failure('model_unavailable', true, '500 boom')],
		['529', { status: 529 }, failure('model_unavailable', true)],
		['a malformed body', { malformed: true }, failure('model_malformed', true)],
		['a long message', { status: 400, message: 'x'.repeat(20_000) }, failure('model_rejected', false)],
	]
	for (const [name, reply, expected] of cases) {
		void t.test(`${name}: ${expected.code}, ${expected.retryable ? 'retryable' : 'not retryable'}`, async (t) => {
			const { url } = await aimock(t, reply)
			const found = failedWith(await ask({ base_url: url, api_key: 'sk-my-key' }))
			t.match(found, expected)
			t.ok(found.message.length <= 8 * 1024 + 1, 'the message is truncated')
		})
	}

	void t.test('no server: model_unavailable, with the error of the system', async (t) => {
		const { url, stop } = await startRawServer(t, () => {})
		await stop()
		t.match(failedWith(await ask({ base_url: url })), {
			code: 'model_unavailable',
			retryable: true,
			message: /ECONNREFUSED/,
		})
	})

	void t.test('an invalid address: model_rejected', async (t) => {
		t.match(failedWith(await ask({ base_url: 'not an address' })), { code: 'model_rejected', message: /base_url/ })
	})

	void t.test('a redirect is not followed', async (t) => {
		const { url, requests } = await startRawServer(t, (response) =>
			response.writeHead(307, { location: '/v2/chat/completions' }).end(),
		)
		const { code, message } = failedWith(await ask({ base_url: url }))
		t.equal(code, 'model_rejected')
		t.match(message, /redirect \(307\) to \/v2\/chat\/completions; set base_url/)
		t.equal(requests.length, 1)
	})

	void t.test('the connection breaks during the stream: model_interrupted', async (t) => {
		const { url } = await aimock(t, { text: 'abcdefghijklmnop', chunkSize: 2, cutAfterChunks: 4, pauseMs: 5 })
		t.match(failedWith(await ask({ base_url: url })), { code: 'model_interrupted', retryable: true })
	})

	void t.test('the stream ends without finish_reason: model_interrupted', async (t) => {
		const { url } = await startRawServer(t, (response) => stream(response, [chunk({ content: 'Half an' })]))
		t.match(failedWith(await ask({ base_url: url })), { code: 'model_interrupted', retryable: true })
	})

	void t.test('the token limit truncates a tool call: model_interrupted, and no call', async (t) => {
		const cut = { tools: [{ name: 'memory_stm_read', arguments: '{"key":' }], finishReason: 'length' }
		const { url } = await aimock(t, cut)
		t.match(failedWith(await ask({ base_url: url })), {
			code: 'model_interrupted',
			retryable: false,
			message: /max_tokens/,
		})
	})

	for (const [name, garbage] of Object.entries({
		'invalid JSON': 'data: {"choices": [\n\n',
		'a number': 'data: 7\n\n',
		'a delta that is text': 'data: {"choices":[{"delta":"x"}]}\n\n',
		'content that is a number': chunk({ content: 7 as unknown as string }),
		'a tool call that is text': chunk({ tool_calls: ['x'] }),
		'a tool call without a name': chunk({ tool_calls: [{ index: 0, id: 'c', function: { arguments: '{}' } }] }),
	})) {
		void t.test(`the stream holds ${name}: model_malformed`, async (t) => {
			const { url } = await startRawServer(t, (response) =>
				stream(response, [chunk({ content: 'a' }), garbage, chunk({}, 'stop')]),
			)
			t.match(failedWith(await ask({ base_url: url })), { code: 'model_malformed', retryable: true })
		})
	}

	void t.test('an error in the stream is classified by its code', async (t) => {
		for (const [code, expected] of [
			['rate_limit_exceeded', 'model_rate_limited'],
			[400, 'model_rejected'],
			['server_error', 'model_unavailable'],
		] as const) {
			const error = `data: ${JSON.stringify({ error: { message: 'no more', code } })}\n\n`
			const { url } = await startRawServer(t, (response) => stream(response, [chunk({ content: 'a' }), error]))
			t.match(failedWith(await ask({ base_url: url })), { code: expected, message: 'no more' })
		}
	})

	void t.test('a server that sends nothing, or stops sending: model_timeout', async (t) => {
		const silent = await startRawServer(t, () => {})
		const halting = await startRawServer(t, (response) => response.write(chunk({ content: 'a' })))
		for (const { url } of [silent, halting]) {
			const found = failedWith(await ask({ base_url: url, timeout_ms: 50 }))
			t.match(found, {
				code: 'model_timeout',
				retryable: true,
				message: 'no whole answer within 0.05 s; if this server needs longer, raise timeout_s of provider test',
			})
		}
	})

	void t.test('an endless answer, or an endless line, is cut off', async (t) => {
		const chatter = chunk({ content: 'x'.repeat(10_000) })
		for (const text of [chatter, 'x'.repeat(1024 * 1024)]) {
			const { url } = await startRawServer(t, (response) => {
				const writeOn = (): void => {
					while (!response.destroyed && response.write(text));
				}
				response.on('drain', writeOn)
				writeOn()
			})
			t.match(failedWith(await ask({ base_url: url, timeout_ms: 60_000 })), {
				code: 'model_malformed',
				retryable: false,
			})
		}
	})
})

void t.test('an abort during the stream ends the call and closes the connection', async (t) => {
	const disconnected = Promise.withResolvers<void>()
	const { url } = await startRawServer(t, (response) => {
		response.on('close', disconnected.resolve)
		response.write(chunk({ content: 'a' }))
	})
	const controller = new AbortController()
	const reply = await ask({ base_url: url }, { signal: controller.signal, onText: () => controller.abort('enough') })
	t.equal(reply.status, 'failed')
	await disconnected.promise
})

void t.test('a retry', async (t) => {
	void t.test(
		'follows a retryable failure, at most three times, and the answer contains nothing of a failed attempt',
		async (t) => {
			const broken: Reply = { text: 'Never to be seen again.', chunkSize: 4, cutAfterChunks: 3, pauseMs: 5 }
			const { url, requests } = await aimock(
				t,
				{ status: 500, message: 'boom' },
				broken,
				{ malformed: true },
				'The answer.',
			)
			const { reply, events } = await askAll([order({ base_url: url })])
			t.equal(answered(reply).content, 'The answer.')
			t.equal(requests().length, 4)
			t.match(events, [
				{ event_type: 'model.request', payload: { provider: 'test', model: 'm-1', step: 3, messages: 1, tools: 0 } },
				{ event_type: 'model.retry', payload: { attempt: 1, code: 'model_unavailable', message: '500 boom' } },
				{ event_type: 'model.retry', payload: { attempt: 2, code: 'model_interrupted' } },
				{ event_type: 'model.retry', payload: { attempt: 3, code: 'model_malformed' } },
			])
		},
	)

	void t.test('does not follow the fourth failure, which has the message of the server', async (t) => {
		const { url, requests } = await aimock(t, { status: 500, message: 'boom' })
		const { reply } = await askAll([order({ base_url: url })])
		t.match(failedWith(reply), { code: 'model_unavailable', message: 'test (m-1): 500 boom' })
		t.equal(requests().length, 4)
	})

	void t.test('waits as long as the server requests, up to the limit, and a random time', async (t) => {
		t.intercept(Math, 'random', { value: () => 0.8 })
		for (const [header, value, expected] of [
			['retry-after-ms', '20', 24],
			['retry-after', '0', 0],
			['retry-after-ms', '35', 42],
			['retry-after', '3600', 48],
			['retry-after', 'Fri, 31 Dec 9999 23:59:59 GMT', 48],
		] as const) {
			let calls = 0
			const { url } = await startRawServer(t, (response) => {
				if (calls++ > 0) return stream(response, [chunk({ content: 'Now.' }), chunk({}, 'stop')])
				response
					.writeHead(429, { 'content-type': 'application/json', [header]: value })
					.end('{"error":{"message":"later"}}')
			})
			const { reply, events } = await askAll([order({ base_url: url })], { baseMs: 5, capMs: 40 })
			t.equal(answered(reply).content, 'Now.')
			t.match(events[1], { event_type: 'model.retry', payload: { delay_ms: expected, code: 'model_rate_limited' } })
		}
	})

	void t.test('waits longer each time, with jitter', async (t) => {
		const { url } = await aimock(t, { status: 500 })
		const { events } = await askAll([order({ base_url: url })], { baseMs: 8, capMs: 20 })
		const waits = events.filter((one) => one.event_type === 'model.retry').map((one) => Number(one.payload.delay_ms))
		t.equal(waits.length, 3)
		for (const [at, [least, most]] of (
			[
				[4, 8],
				[8, 16],
				[16, 20],
			] as const
		).entries()) {
			const wait = waits[at] ?? -1
			t.ok(wait >= least && wait <= most, `wait ${at + 1} of ${wait} ms is within ${least} to ${most}`)
		}
	})

	void t.test('is cancelled when the run is stopped', async (t) => {
		const { url, requests } = await aimock(t, { status: 429, retryAfter: 50 })
		const controller = new AbortController()
		const { reply } = await askAll([order({ base_url: url }), order({ base_url: url })], undefined, {
			signal: controller.signal,
			onEvent: (event) => event.event_type === 'model.retry' && controller.abort('enough'),
		})
		t.equal(reply.status, 'failed')
		t.equal(requests().length, 1)
	})
})

void t.test(
	'each of many calls to a server that fails in every way ends with the whole answer or a failure',
	async (t) => {
		const seed = Number(process.env.SVC_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31))
		t.comment(`SVC_TEST_SEED=${seed}`)
		const random = pseudoRandom(seed)
		const text = 'One two three four.'
		const args = '{"key":"one","value":"two"}'
		const call = (piece: string): string =>
			chunk({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'memory_stm_read', arguments: piece } }] })
		const events = [chunk({ content: 'One two ' }), chunk({ content: 'three four.' }), call(args.slice(0, 9))]
		const rest = [
			chunk({ tool_calls: [{ index: 0, function: { arguments: args.slice(9) } }] }),
			chunk({}, 'tool_calls'),
		]
		const whole = [...events, ...rest]
		const faults: ((response: ServerResponse) => unknown)[] = [
			(response) => response.writeHead(429, { 'retry-after-ms': '1' }).end('{"error":{"message":"later"}}'),
			(response) => response.writeHead(500).end('oops'),
			(response) => response.writeHead(529).end(),
			(response) => response.destroy(),
			(response) => response.writeHead(200).end('<html>'),
			(response) => stream(response, [...events, 'data: {"choices":[{"delta\n\n', ...rest]),
			...whole.map((_, count) => (response: ServerResponse) => stream(response, whole.slice(0, count))),
			...whole.map((_, count) => (response: ServerResponse) => {
				startStream(response).write(whole.slice(0, count).join('') || ': nothing yet\n\n', () =>
					setImmediate(() => response.destroy()),
				)
			}),
		]
		const { url, requests } = await startRawServer(t, (response) => {
			const fault = random() < 0.7 ? faults[Math.floor(random() * faults.length)] : undefined
			if (fault) fault(response)
			else stream(response, whole)
		})
		const calls = Number(process.env.MODEL_FAULTS ?? 80)
		const statuses = { answered: 0, failed: 0 }
		const callTimes = async (count: number): Promise<void> => {
			for (let n = 0; n < count; n++) {
				const { reply, events: emitted } = await askAll([order({ base_url: url })])
				statuses[reply.status]++
				if (reply.status === 'failed') t.equal(emitted.filter((one) => one.event_type === 'model.retry').length, 3)
				else {
					t.equal(reply.answer.content, text)
					t.strictSame(reply.answer.tool_calls, [{ id: 'c1', name: 'memory_stm_read', arguments: args }])
				}
			}
		}
		await Promise.all(Array.from({ length: 16 }, () => callTimes(calls / 16)))
		t.ok(statuses.answered > calls / 2 && statuses.failed > 0, JSON.stringify(statuses))
		t.ok(requests.length <= calls * 4)
	},
)

void t.test('a fallback', async (t) => {
	void t.test('follows the refusal of the first model at once, and the answer names its model', async (t) => {
		const first = await aimock(t, { status: 401, message: 'bad key' })
		const second = await aimock(t, 'From the second.')
		const orders = [
			order({ base_url: first.url, provider: 'one' }),
			order({ base_url: second.url, provider: 'two', model: 'm-2' }),
		]
		const { reply, events } = await askAll(orders)
		t.match(answered(reply), { content: 'From the second.', provider: 'two', model: 'm-2' })
		t.equal(first.requests().length, 1)
		t.match(events, [
			{ event_type: 'model.request', payload: { provider: 'one' } },
			{
				event_type: 'model.fallback',
				payload: { from: 'one', to: 'two', code: 'model_rejected', message: '401 bad key' },
			},
			{ event_type: 'model.request', payload: { provider: 'two', model: 'm-2' } },
		])
	})

	void t.test('follows a timeout at once, since each further attempt could take as long', async (t) => {
		let calls = 0
		const { url } = await startRawServer(t, () => calls++)
		const offline = order({ provider: 'offline', kind: 'offline' })
		const { reply, events } = await askAll([order({ base_url: url, timeout_ms: 50 }), offline])
		t.match(answered(reply).content, /offline provider/)
		t.equal(calls, 1)
		t.match(events[1], { event_type: 'model.fallback', payload: { code: 'model_timeout' } })
	})

	void t.test('fails with the messages of all models if all fail', async (t) => {
		const first = await aimock(t, { status: 400, message: 'no such model' })
		const second = await aimock(t, { status: 403, message: 'not you' })
		const { reply } = await askAll([
			order({ base_url: first.url, provider: 'one' }),
			order({ base_url: second.url, provider: 'two' }),
		])
		t.match(failedWith(reply), {
			code: 'model_rejected',
			message: 'one (m-1): 400 no such model; two (m-1): 403 not you',
			status: 403,
		})
	})

	void t.test('fails with a status only if all models fail for the same reason', async (t) => {
		const first = await aimock(t, { status: 429, message: 'no money', code: 'insufficient_quota' })
		const second = await aimock(t, { status: 400, message: 'no such field' })
		const { reply } = await askAll([
			order({ base_url: first.url, provider: 'one' }),
			order({ base_url: second.url, provider: 'two' }),
		])
		t.match(failedWith(reply), { code: 'model_rejected', status: undefined })
	})

	void t.test('may be the offline provider', async (t) => {
		const { url } = await aimock(t, { status: 401 })
		const { reply } = await askAll([order({ base_url: url }), order({ provider: 'offline', kind: 'offline' })])
		t.match(answered(reply).content, /offline provider/)
	})
})

void t.test('a call waits for a server that loads its model, as long as for an answer', async (t) => {
	const loading = JSON.stringify({ error: { message: 'Loading model', type: 'unavailable_error', code: 503 } })
	let left = 9
	const { url } = await startRawServer(t, (response) => {
		if (left-- > 0) return response.writeHead(503, { 'content-type': 'application/json' }).end(loading)
		if (left >= -3) return response.writeHead(500).end('not yet')
		return stream(response, [chunk({ content: 'Loaded.' }, 'stop')])
	})
	const { reply, events } = await askAll([order({ base_url: url })])
	t.equal(answered(reply).content, 'Loaded.', 'later errors are retried as usual')
	t.equal(events.filter(({ event_type }) => event_type === 'model.retry').length, 12)

	const never = await startRawServer(t, (response) => response.writeHead(503).end(loading))
	const failed = await askAll([order({ base_url: never.url, timeout_ms: 100 })])
	t.match(failedWith(failed.reply), { code: 'model_unavailable', message: /Loading model/ })
	t.ok(never.requests.length > 4)

	const other = await startRawServer(t, (response) => stream(response, [chunk({ content: 'Here.' }, 'stop')]))
	const before = never.requests.length
	const withFallback = await askAll([order({ base_url: never.url }), order({ base_url: other.url })])
	t.equal(answered(withFallback.reply).content, 'Here.')
	t.equal(never.requests.length - before, 4, 'a fallback does not wait')
})

void t.test('a call has a slot of its provider during an attempt, and none between attempts', async (t) => {
	let held = 0
	let taken = 0
	let heldDuringRequests = 0
	const slot: ModelIo['slot'] = async ({ provider }) => {
		t.equal(provider, 'limited')
		held++
		taken++
		return () => void held--
	}
	const failing = await startRawServer(t, (response) => {
		heldDuringRequests += held
		response.writeHead(500).end('not now')
	})
	const { url } = await startRawServer(t, (response) => {
		heldDuringRequests += held
		return stream(response, [chunk({ content: 'Here.' }, 'stop')])
	})
	const onEvent = ({ event_type }: NewEvent): void => {
		if (event_type === 'model.retry' || event_type === 'model.fallback') t.equal(held, 0, event_type)
	}
	const limited = order({ base_url: failing.url, provider: 'limited', needs_slot: true })
	const { reply } = await askAll([limited, order({ base_url: url })], undefined, { onEvent, slot })
	t.equal(answered(reply).content, 'Here.')
	t.strictSame({ held, taken, heldDuringRequests }, { held: 0, taken: 4, heldDuringRequests: 4 })

	const stopped = new Fault('stopped', 'the run is stopped')
	const refused = await askAll([limited], undefined, { slot: () => Promise.reject(stopped) })
	t.match(failedWith(refused.reply), { message: 'the run is stopped' })
	t.strictSame(refused.events, [])
})

void t.test('a call waits for an unreachable server for startup_timeout_s', async (t) => {
	let left = 9
	const { url } = await startRawServer(t, (response) => {
		if (left-- > 0) return response.writeHead(502 + (left % 3)).end('no upstream')
		return stream(response, [chunk({ content: 'Started.' }, 'stop')])
	})
	const { reply } = await askAll([order({ base_url: url, startup_timeout_ms: 60_000 })])
	t.equal(answered(reply).content, 'Started.')

	const closed = await listenOnLoopback(createServer())
	await closed.stop()
	const base_url = `${closed.url}/v1`
	const retriesIn = ({ events }: { events: { event_type: string }[] }): number =>
		events.filter(({ event_type }) => event_type === 'model.retry').length
	const waits = await askAll([order({ base_url, startup_timeout_ms: 100 })])
	t.match(failedWith(waits.reply), { code: 'model_unavailable', message: /raise startup_timeout_s of provider \S+$/ })
	t.ok(retriesIn(waits) > 3, String(retriesIn(waits)))
	t.equal(retriesIn(await askAll([order({ base_url })])), 3)
	const offline = order({ provider: 'offline', kind: 'offline' })
	const withFallback = await askAll([order({ base_url, startup_timeout_ms: 60_000 }), offline])
	t.equal(retriesIn(withFallback), 3, 'a fallback does not wait')

	let refusals = 9
	const proxy = await startRawServer(t, (response) => {
		if (refusals-- > 0) return response.writeHead(503, { 'retry-after': '0' }).end('no upstream')
		return stream(response, [chunk({ content: 'Started.' }, 'stop')])
	})
	const paced = await askAll([order({ base_url: proxy.url, startup_timeout_ms: 60_000 })], { baseMs: 10, capMs: 20 })
	t.equal(answered(paced.reply).content, 'Started.')
	for (const { payload } of paced.events.filter(({ event_type }) => event_type === 'model.retry'))
		t.ok(Number(payload.delay_ms) >= 10, 'a proxy that requests no delay still gets one')
})

void t.test('requests that exceeded the shared context of llama.cpp are retried far apart', async (t) => {
	const error = { error: { code: 500, message: 'Context size has been exceeded.', type: 'server_error' } }
	let left = 20
	const { url } = await startRawServer(t, (response) =>
		stream(response, left-- > 0 ? [`data: ${JSON.stringify(error)}\n\n`] : [chunk({ content: 'Room.' }, 'stop')]),
	)
	const baseMs = 10
	const runs = await Promise.all(
		Array.from({ length: 20 }, () => askAll([order({ base_url: url })], { baseMs, capMs: 1_000 })),
	)
	for (const { reply } of runs) t.equal(answered(reply).content, 'Room.')
	const delays = runs.flatMap(({ events }) =>
		events.flatMap(({ payload }) => (payload as { delay_ms?: number }).delay_ms ?? []),
	)
	t.equal(delays.length, 20)
	t.ok(Math.max(...delays) > 2 * baseMs, 'longer than after another failure')
	t.ok(Math.max(...delays) - Math.min(...delays) > 2 * baseMs, delays.join(' '))
})

void t.test('retryAfter reads seconds, dates and milliseconds only', (t) => {
	const now = Date.parse('2026-01-01T00:00:00Z')
	const read = (headers: Record<string, string>): number | undefined => retryAfter(new Headers(headers), now)
	t.equal(read({ 'retry-after': '2' }), 2_000)
	t.equal(read({ 'retry-after': '1.5' }), 1_500)
	t.equal(read({ 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' }), 9_000)
	t.equal(read({ 'retry-after': 'Thu, 01 Jan 2025 00:00:00 GMT' }), 0)
	t.equal(read({ 'retry-after': '2', 'retry-after-ms': '150' }), 150)
	t.equal(read({ 'retry-after': 'soon' }), undefined)
	t.equal(read({ 'retry-after-ms': '-1' }), undefined)
	t.equal(read({}), undefined)
	t.equal(retryAfter(undefined, now), undefined)
	t.end()
})

type Test = Pick<typeof t, 'teardown'>

/** A model server that answers the n-th request with the n-th reply, whatever its prompt. */
async function aimock(test: Test, ...replies: Reply[]): Promise<Awaited<ReturnType<typeof startModelServer>>> {
	const server = await startModelServer()
	test.teardown(() => server.stop())
	server.on(/^/, ...replies)
	return server
}

function stream(response: ServerResponse, events: string[]): void {
	startStream(response)
	for (const event of events) response.write(event)
	response.end('data: [DONE]\n\n')
}

function chunk(delta: object, finish_reason: string | null = null): string {
	return `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
}

/** Numbers from 0 to 1, determined by the seed. */
function pseudoRandom(seed: number): () => number {
	let count = 0
	return () => createHash('sha256').update(`${seed}:${count++}`).digest().readUInt32BE() / 2 ** 32
}

function order(change: Partial<ModelOrder> = {}): ModelOrder {
	return { provider: 'test', kind: 'openai', model: 'm-1', timeout_ms: 60_000, ...change }
}

function io(onText: (text: string) => unknown = () => {}): { signal: AbortSignal; onText: (text: string) => void } {
	return { signal: new AbortController().signal, onText }
}

interface AskChange {
	prompt?: string
	tools?: ToolSpec[]
	signal?: AbortSignal
	onText?: (text: string) => unknown
}

function ask(
	change: Partial<ModelOrder>,
	{ prompt = 'Hi.', signal, onText, ...rest }: AskChange = {},
): Promise<ModelReply> {
	const request = { system: null, turns: [{ role: 'user' as const, content: prompt }], tools: rest.tools ?? tools }
	return openai.ask(order(change), request, { ...io(onText), ...(signal && { signal }) })
}

async function askAll(
	orders: ModelOrder[],
	{ baseMs, capMs } = { baseMs: 1, capMs: 5 },
	{
		signal = new AbortController().signal,
		onEvent = (_event: NewEvent): unknown => undefined,
		slot = undefined as ModelIo['slot'],
	} = {},
): Promise<{ reply: ModelReply; events: NewEvent[] }> {
	const events: NewEvent[] = []
	const emit = (event: NewEvent): void => {
		events.push(event)
		onEvent(event)
	}
	const request: ModelRequest = { system: null, turns: [{ role: 'user', content: 'Hi.' }], tools: [] }
	const policy = { retries: 3, baseMs, capMs }
	const reply = await askModels(
		orders,
		() => request,
		{ signal, step: 3, emit, stream: () => {}, blob: async () => null, spent: () => {}, ...(slot && { slot }) },
		policy,
	)
	return { reply, events }
}

function answered(reply: ModelReply): ModelAnswer {
	if (reply.status === 'failed') throw new Error(`${reply.failure.code}: ${reply.failure.message}`)
	return reply.answer
}

function failedWith(reply: ModelReply): ModelFailure {
	if (reply.status === 'answered') throw new Error(`answered: ${reply.answer.content}`)
	return reply.failure
}

function failure(
	code: ModelFailure['code'],
	retryable: boolean,
	message?: string,
	retryAfterMs?: number,
): Partial<ModelFailure> {
	return {
		code,
		retryable,
		...(message !== undefined && { message }),
		...(retryAfterMs !== undefined && { retryAfterMs }),
	}
}
