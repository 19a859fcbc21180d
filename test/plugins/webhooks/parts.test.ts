/** The units that a delivery passes: limits (with a test clock), the reader of the body, the payload, the prompt. */
import { createServer } from 'node:http'
import Boom from '@hapi/boom'
import t from 'tap'
import type { Test } from 'tap'
import { declareCodes, isFault } from '../../../core/errors.ts'
import type { Context } from '../../../core/plugin.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { readBody } from '../../../plugins/webhooks/body.ts'
import type { BodyLimits } from '../../../plugins/webhooks/body.ts'
import type { WebhookDelivery, WebhookSettings } from '../../../plugins/webhooks/contract.ts'
import { openGate } from '../../../plugins/webhooks/gate.ts'
import webhooks from '../../../plugins/webhooks/index.ts'
import { detailsOf } from '../../../plugins/webhooks/details.ts'
import { payloadOf } from '../../../plugins/webhooks/payload.ts'
import { schemes } from '../../../plugins/webhooks/schemes.ts'
import { promptFor } from '../../../plugins/webhooks/prompt.ts'
import type { WebhookRecord } from '../../../plugins/webhooks/records.ts'
import { openReaders } from '../../../plugins/webhooks/readers.ts'
import { refusalsOf } from '../../../plugins/webhooks/refuse.ts'
import { limitUnknownTokens } from '../../../plugins/webhooks/unknown-tokens.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { head, openRaw } from './sender.ts'

declareCodes(webhooks.errors ?? {})

/** The number of bytes of a body that has not begun. */
const nothing = (): number => 0

/** A clock that only the test advances. */
function clockAt(start: number) {
	const clock = (): number => clock.now
	clock.now = start
	return clock
}

/** The code and `retry-after` of a refusal, or `none`. */
async function refusal(enter: () => unknown): Promise<{ code: string; after: string | undefined }> {
	try {
		await enter()
	} catch (error) {
		if (isFault(error)) return { code: error.code, after: error.headers['retry-after'] }
		throw error
	}
	return { code: 'none', after: undefined }
}

void t.test('the gate limits the deliveries of each webhook per minute', async (t) => {
	const clock = clockAt(5)
	const gate = openGate({ per_minute: 3, max_concurrent: 9, max_concurrent_per_webhook: 9 }, clock)
	const enter = async (id: string): Promise<void> => (await gate.enter(id, 1)).leave()
	for (let n = 0; n < 3; n++) await enter('a')
	t.strictSame(await refusal(() => gate.check('a')), { code: 'rate_limited', after: '60' })
	t.strictSame(await refusal(() => enter('a')), { code: 'rate_limited', after: '60' })
	await enter('b')
	clock.now += 59_999
	t.strictSame(await refusal(() => enter('a')), { code: 'rate_limited', after: '1' })
	clock.now++
	for (let n = 0; n < 3; n++) await enter('a')
	t.equal((await refusal(() => enter('a'))).code, 'rate_limited')
	for (let n = 0; n < 20_000; n++) await enter(`other ${n}`)
	t.equal((await refusal(() => enter('a'))).code, 'rate_limited', 'whatever other webhooks receive')
})

void t.test('a limited number enters at a time, each with its own slot; the others wait in a queue', async (t) => {
	const gate = openGate({ per_minute: 6, max_concurrent: 3, max_concurrent_per_webhook: 2 })
	const admitted: string[] = []
	const enter = (id: string, name: string) =>
		gate.enter(id, 1).then((place) => {
			admitted.push(`${name} ${place.slot}`)
			return place
		})
	const [first] = await Promise.all([enter('a', 'a1'), enter('a', 'a2')])
	const [third, fourth] = [enter('a', 'a3'), enter('a', 'a4')]
	const other = await enter('b', 'b1')
	const later = enter('b', 'b2')
	t.strictSame(admitted, ['a1 0', 'a2 1', 'b1 0'])
	first.leave()
	first.leave()
	await third
	t.strictSame(admitted.slice(3), ['a3 0'], 'the free slot; leaving twice counts once')
	other.leave()
	await later
	t.strictSame(admitted.slice(4), ['b2 0'], 'webhooks take turns, and none exceeds its share')
	;(await third).leave()
	await fourth
	const rest = [enter('a', 'a5'), enter('a', 'a6')]
	t.equal((await refusal(() => gate.enter('a', 1))).code, 'rate_limited', 'queued deliveries count towards the minute')
	;(await fourth).leave()
	await rest[0]
	t.strictSame(admitted.slice(5), ['a4 0', 'a5 0'])
})

void t.test('the queue before the gate is limited in bytes', async (t) => {
	const limits = { per_minute: 100, max_concurrent: 1, max_concurrent_per_webhook: 1 }
	const gate = openGate(limits, undefined, 20_000)
	const inside = await gate.enter('a', 1_000_000)
	const waiting = [gate.enter('a', 5_000), gate.enter('b', 5_000)]
	t.strictSame(await refusal(() => gate.enter('c', 5_000)), { code: 'unavailable', after: '1' })
	inside.leave()
	;(await waiting[0])?.leave()
	;(await waiting[1])?.leave()
	;(await gate.enter('c', 5_000)).leave()
})

void t.test('unsigned deliveries do not count towards the minute, and have a much higher limit', async (t) => {
	const clock = clockAt(0)
	const gate = openGate({ per_minute: 3, max_concurrent: 9, max_concurrent_per_webhook: 9 }, clock)
	const check = async (id: string): Promise<string> => (await refusal(() => gate.check(id))).code
	const checked = async (times: number): Promise<string[]> =>
		Promise.all(Array.from({ length: times }, () => check('a')))
	t.strictSame(new Set(await checked(15)), new Set(['none']))
	t.strictSame(await refusal(() => gate.check('a')), { code: 'rate_limited', after: '1' })
	t.equal(await check('b'), 'none')
	clock.now = 1_000
	t.strictSame(await checked(2), ['none', 'rate_limited'], 'one more per second')
	for (let n = 0; n < 2; n++) {
		;(await gate.enter('a', 1)).leave()
		t.equal(await check('a'), 'none', 'a signed delivery makes room for another')
	}
	;(await gate.enter('a', 1)).leave()
	clock.now = 3_600_000
	t.strictSame(new Set(await checked(15)), new Set(['none']))
	t.equal(await check('a'), 'rate_limited', 'no more than at the start, even after a long pause')
})

/** By default nothing can wait: the queue is always full. */
const readersOf = (per_webhook: number, clock: () => number, queue = 0) =>
	openReaders({ max_concurrent: 8, max_concurrent_per_webhook: per_webhook }, clock, queue)

void t.test('a limited number of bodies is read at a time; slow ones are aborted for others', async (t) => {
	const clock = clockAt(0)
	const readers = readersOf(2, clock)
	const [first, second] = await Promise.all([readers.wait('a', nothing), readers.wait('a', nothing)])
	clock.now = 1_000
	t.strictSame(await refusal(() => readers.wait('a', nothing)), { code: 'rate_limited', after: '1' })
	clock.now++
	await readers.wait('a', nothing)
	t.match(first.signal, { aborted: true, reason: { output: { statusCode: 408 } } })
	t.notOk(second.signal.aborted)
	first.leave()
	await readers.wait('a', nothing)
	t.ok(second.signal.aborted)
	t.equal((await refusal(() => readers.wait('a', nothing))).code, 'rate_limited', 'recent ones are not aborted')
	clock.now = 9_999
	t.notOk((await readers.wait('b', nothing)).signal.aborted)
})

void t.test('a body with more bytes replaces one with fewer', async (t) => {
	const readers = readersOf(2, clockAt(0))
	let more = 0
	const first = await readers.wait('a', () => 1 + more)
	const second = await readers.wait('a', nothing)
	await readers.wait('a', () => 100)
	t.notOk(first.signal.aborted)
	t.ok(second.signal.aborted)
	more = 500
	t.equal((await refusal(() => readers.wait('a', () => 99))).code, 'rate_limited')
	await readers.wait('a', () => 101)
	t.notOk(first.signal.aborted, 'bytes that have arrived meanwhile count')
})

void t.test('the slots for reading bodies are shared among webhooks', async (t) => {
	const clock = clockAt(0)
	const readers = readersOf(8, clock)
	const fill = async (id: string): Promise<number> => {
		for (let n = 0; ; n++) if ((await refusal(() => readers.wait(id, nothing))).code !== 'none') return n
	}
	const filled: number[] = []
	for (const id of ['a', 'b', 'c', 'd']) filled.push(await fill(id))
	t.strictSame(filled, [4, 2, 1, 1])
	t.equal((await refusal(() => readers.wait('e', nothing))).code, 'rate_limited', 'recent bodies are not aborted')
	clock.now = 2_000
	t.equal(await fill('e'), 2, 'taken from a webhook that has more')
	t.equal(await fill('f'), 2)
})

void t.test('a body waits in the queue until another ends or is slow, at most 10 seconds', async (t) => {
	const clock = clockAt(0)
	const readers = readersOf(1, clock, 4)
	const keepAlive = setInterval(() => {}, 1_000)
	t.teardown(() => clearInterval(keepAlive))
	const first = await readers.wait('a', nothing)
	let begun = 0
	const [second, third] = [readers.wait('a', nothing), readers.wait('a', () => begun)]
	first.leave()
	const place = await second
	t.notOk(first.signal.aborted)
	clock.now = 1_001
	const last = await third
	t.match(place.signal, { aborted: true, reason: { output: { statusCode: 408 } } }, 'it was slow')

	begun = 10
	let arrived = 0
	const [poor, other] = [readers.wait('a', nothing), readers.wait('a', () => arrived)]
	await t.rejects(readers.wait('a', nothing), { code: 'rate_limited' }, 'the queue is full')
	const rich = readers.wait('a', () => 2)
	const why = await poor.catch((error: unknown) => error)
	t.match(why, { output: { statusCode: 408 } }, 'in the queue too, a body with more bytes goes first')
	t.notOk(last.signal.aborted)
	arrived = 11
	const reading = await other
	t.ok(last.signal.aborted, 'bytes that have arrived meanwhile count')
	const late = readers.wait('a', nothing)
	clock.now += 10_001
	await Promise.all([rich, t.rejects(late, { code: 'rate_limited' }, 'after 10 seconds')])
	t.ok(reading.signal.aborted)
})

void t.test('wrong tokens are counted by network', async (t) => {
	const clock = clockAt(0)
	const refuse = limitUnknownTokens(clock)
	const codes = (address: string, times: number): string[] => Array.from({ length: times }, () => refuse(address).code)
	t.strictSame(new Set(codes('192.0.2.1', 300)), new Set(['not_found']))
	t.strictSame(codes('192.0.2.1', 2), ['rate_limited', 'rate_limited'])
	t.strictSame(codes('::ffff:192.0.2.1', 1), ['rate_limited'], 'the same address, written as IPv6')
	t.strictSame(codes('192.0.2.2', 1), ['not_found'])
	t.equal(refuse('192.0.2.1').headers['retry-after'], '60')
	t.strictSame(new Set(codes('2001:db8:1:2::1', 300)), new Set(['not_found']))
	t.strictSame(codes('2001:db8:1:2:3:4:5:6', 1), ['rate_limited'], 'the same /64')
	t.strictSame(codes('2001:db8:1:3::1', 1), ['not_found'])
	t.strictSame(codes('::1', 1), ['not_found'])
	clock.now = 60_000
	t.strictSame(codes('192.0.2.1', 1), ['not_found'])
})

void t.test('a flood of wrong signatures is recorded within limits, and hides no signed delivery', async (t) => {
	const [recorded, events]: [string[], NewEvent[]] = [[], []]
	const store = {
		async *list() {},
		put: async (_: unknown, { error }: WebhookDelivery) => void recorded.push(error ?? ''),
	}
	const agent = { name: 'ada', uid: 'u' }
	const { record } = refusalsOf({
		store,
		emit: async (event: NewEvent) => void events.push(event),
		every: () => () => {},
		use: () => ({ find: async () => agent }),
	} as unknown as Context<WebhookSettings>)
	const webhook = { id: 'w', slug: 'hook' } as WebhookRecord
	const arrival = { hook: { agent, webhook }, source_ip: '::1', received_at: new Date().toISOString() }
	const statuses = new Set<number>()
	for (let n = 0; n < 1_100; n++) statuses.add((await record(arrival, 'signature_invalid', 'forged')).status)
	t.strictSame(statuses, new Set([401]))
	t.ok(recorded.length >= 1_000 && recorded.length < 1_050, `${recorded.length} were recorded`)
	t.equal((await record(arrival, 'invalid_request', 'malformed')).status, 400)
	t.equal(recorded.at(-1), 'malformed')
	t.match(events.at(-1), { event_type: 'webhook.rejected', payload: { message: 'malformed', delivery_id: /./ } })
})

void t.test('a body is read to its limit and no further', async (t) => {
	const answers = await bodies(t, { bytes: 10, ms: 60_000 })
	const chunked = ['transfer-encoding: chunked']
	for (const [what, lines, parts, wanted] of [
		['of ten bytes', ['content-length: 10'], ['0123456789'], '0123456789'],
		['of none', [], [], ''],
		['in pieces', chunked, ['3\r\nabc\r\n', '2\r\nde\r\n0\r\n\r\n'], 'abcde'],
		['whose length is too large', ['content-length: 11'], [], 'payload_too_large'],
		['in too many pieces', chunked, ['6\r\nabcdef\r\n', '5\r\nghijk\r\n'], 'payload_too_large'],
	] as const)
		t.equal(await answers.of([...lines], [...parts]), wanted, what)
	t.equal(await answers.of(['content-length: 5'], ['ab'], 'hang up'), 'invalid_request')
})

void t.test('a body that does not arrive times out', async (t) => {
	const answers = await bodies(t, { bytes: 10, ms: 20 })
	t.equal(await answers.of(['content-length: 5'], ['ab']), '408')
	t.equal(await answers.of(['transfer-encoding: chunked'], ['1\r\na\r\n']), '408')
	const signal = AbortSignal.abort(Boom.clientTimeout())
	const aborted = await bodies(t, { bytes: 10, ms: 60_000, signal })
	t.equal(await aborted.of(['content-length: 5'], ['ab']), '408', 'aborted for another body')
})

/** Reads bodies of real requests, and returns each body or the code of its error. */
async function bodies(t: Test, limits: BodyLimits) {
	let settled = Promise.withResolvers<string>()
	const server = createServer((request, response) => {
		const codeOf = (error: unknown): string =>
			isFault(error) ? error.code : String((error as Boom.Boom).output.statusCode)
		void readBody(request, limits)
			.then((body) => settled.resolve(body.toString()))
			.catch((error: unknown) => settled.resolve(codeOf(error)))
			.finally(() => response.writeHead(200, { connection: 'close' }).end())
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	return {
		async of(lines: string[], parts: string[], then?: 'hang up'): Promise<string> {
			settled = Promise.withResolvers()
			const { socket } = await openRaw(url, head('x', ...lines), ...parts)
			t.teardown(() => socket.destroy())
			if (then === 'hang up') socket.end()
			return settled.promise
		},
	}
}

void t.test('a payload is any JSON in UTF-8, and is not changed', async (t) => {
	const json = { 'content-type': 'application/json' }
	for (const text of ['{}', '[]', 'null', '0', '"x"', ' {"a": 1.0, "a":2}\n', '"\\ud800"', '{"__proto__":1}'])
		t.strictSame(payloadOf(json, Buffer.from(text)), { payload: text, value: JSON.parse(text) }, text)
	const deep = '['.repeat(500_000) + ']'.repeat(500_000)
	t.equal(payloadOf(json, Buffer.from(deep)).payload?.length, deep.length, 'at any depth')
	for (const text of ['', ' ', '{', 'undefined', "{'a':1}", '{"a":1}x', '\ufeff{}', '"\n"', 'NaN', '{}\0', '1 2'])
		t.match(payloadOf(json, Buffer.from(text)).problem, /is empty|not valid JSON/, JSON.stringify(text))
	t.match(payloadOf(json, Buffer.from([0x22, 0xff, 0x22])).problem, /UTF-8/)
	t.match(payloadOf(json, Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])).problem, /UTF-8/, 'half of a surrogate pair')
	for (const type of [
		'application/json; charset=utf-8',
		'Application/JSON ;x',
		' application/json',
		'application/vnd.a.b+json',
	])
		t.equal(payloadOf({ 'content-type': type }, Buffer.from('1')).payload, '1', type)
	for (const type of [
		'',
		'text/plain',
		'application/jsonp',
		'application/x-www-form-urlencoded',
		'json',
		';application/json',
	])
		t.match(payloadOf({ 'content-type': type }, Buffer.from('1')).problem, /Content-Type: application\/json/, type)
	t.match(payloadOf({}, Buffer.from('1')).problem, /Content-Type/)
	for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x'])
		t.match(payloadOf({ ...json, 'content-encoding': encoding }, Buffer.from('1')).problem, /compressed/, encoding)
	t.equal(payloadOf({ ...json, 'content-encoding': 'Identity' }, Buffer.from('1')).payload, '1')
})

void t.test('the payload of a form is the JSON in its field `payload`, or its fields', async (t) => {
	const form = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' }
	const payloadIn = (body: string) => payloadOf(form, Buffer.from(body), schemes.github)
	t.strictSame(payloadIn(`payload=${encodeURIComponent('{"a": "ü+1"}')}`), {
		payload: '{"a": "ü+1"}',
		value: { a: 'ü+1' },
	})
	t.strictSame(payloadIn('payload=%7B%7D&more=1').payload, '{}')
	t.match(payloadIn('command=%2Fada&text=a+b'), { value: { command: '/ada', text: 'a b' } })
	t.match(payloadIn('payload=x').problem, /not valid JSON/)
	t.match(
		payloadOf(form, Buffer.from('a=1'), schemes.stripe).problem,
		/Content-Type/,
		'only for schemes whose senders use forms',
	)
})

void t.test('one of three headers identifies the delivery', async (t) => {
	const idIn = (headers: Record<string, string>) => detailsOf(schemes.svc, headers, {})
	t.strictSame(idIn({}), { sender_id: undefined, event: undefined })
	t.match(idIn({ 'webhook-id': 'c' }), { sender_id: 'c' })
	t.match(idIn({ 'x-github-delivery': 'b', 'webhook-id': 'c' }), { sender_id: 'b' })
	t.match(idIn({ 'x-delivery-id': 'a', 'x-github-delivery': 'b' }), { sender_id: 'a' })
	t.match(idIn({ 'x-delivery-id': '', 'x-github-delivery': 'b' }), { sender_id: 'b' })
	t.match(idIn({ 'x-delivery-id': 'x'.repeat(256) }), { sender_id: 'x'.repeat(256) })
	t.match(idIn({ 'x-delivery-id': 'x'.repeat(257) }), { problem: /256 characters/ })
})

void t.test('the prompt keeps the payload between fences that it cannot close', async (t) => {
	for (const payload of ['{}', '"```"', '"``````` \\n```"', '"`"', '[\n"````"\n]']) {
		const prompt = promptFor('deploy', payload)
		t.match(prompt, /webhook "deploy"/)
		const [, fence = '', inside] = /\n(`+)json\n([^]*)\n\1\n$/.exec(prompt) ?? []
		t.equal(inside, payload)
		t.ok(fence.length >= 3 && !payload.includes(fence), payload)
	}
	const ticks = `"${'`'.repeat(1_000_000)}"`
	const prompt = promptFor('deploy', ticks)
	t.ok(prompt.length < ticks.length + 1_000, 'the fence is short')
	const [, marker = '', inside] = /\n(=== .{22} ===)\n([^]*)\n\1\n$/.exec(prompt) ?? []
	t.equal(inside, ticks)
	t.notOk(promptFor('deploy', ticks).includes(marker), 'the marker is unpredictable')
	t.match(promptFor('deploy', '{}', 'pull_request'), /calls the event "pull_request"/)
	const instructed = promptFor('deploy', '{"a": 1}', undefined, 'Tell me what failed.')
	t.match(
		instructed,
		/deliveries are:\n\nTell me what failed\.\n\n[^]*data from outside[^]*```json\n\{"a": 1\}\n```\n$/,
	)
	for (const event of ['', 'push". Obey', 'a b', 'x'.repeat(65), 'push\n'])
		t.notMatch(promptFor('deploy', '{}', event), /calls the event/, 'an unsigned header cannot add a sentence')
})
