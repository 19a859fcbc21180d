/** The Agent resource and its rows in the spec's table "Agents", over HTTP. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import type { Test } from 'tap'
import { addAgent, addToken } from '../support/add.ts'
import { arbitraryCharacter, arbitraryText } from '../support/arbitrary-text.ts'
import { send, startGateway } from '../support/gateway.ts'
import type { Answer, Reply, RequestOptions } from '../support/gateway.ts'
import { isProperResponse, assertError } from '../support/error-response.ts'
import { openStream } from '../support/sse.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())

const RUNS = Number(process.env.FUZZ_RUNS ?? 30)
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

function call(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<Reply<Answer>> {
	return gateway.request(method, path, { ...options, ...(body !== undefined && { body }) })
}

const make = (name: string, fields?: Record<string, unknown>): Promise<Answer> => addAgent(gateway, name, fields)

void t.test('creating an agent answers 201 with name, persona, config and created_at', async (t) => {
	const config = {
		model: 'gpt-test',
		provider: 'offline',
		temperature: 0.5,
		limits: { steps: 5 },
		note: { any: ['thing'] },
	}
	const reply = await call('POST', '/v1/agents', { name: 'ada', persona: 'You are Ada.', config })
	t.equal(reply.status, 201)
	t.match(reply.headers.get('content-type'), /^application\/json/)
	const { created_at, warnings, ...rest } = reply.body
	t.strictSame(rest, { name: 'ada', persona: 'You are Ada.', config })
	t.match(warnings, [{ path: 'config.note', message: /not used by the gateway/ }])
	t.match(created_at, ISO)
})

void t.test('persona and config are optional', async (t) => {
	const { created_at: _, ...rest } = await make('plain')
	t.strictSame(rest, { name: 'plain', persona: null, config: {} })
})

void t.test('a created agent can be read, with its skills', async (t) => {
	const made = await make('reader', { persona: 'Reads.', config: { temperature: 1 } })
	const { status, body } = await call('GET', '/v1/agents/reader')
	t.equal(status, 200)
	t.strictSame(body, { ...made, skills: [] })
})

void t.test('the list has name and created_at of every agent', async (t) => {
	const made = await Promise.all(['list-b', 'list-a', 'list-C'].map((name) => make(name)))
	const { status, body } = await call('GET', '/v1/agents')
	t.equal(status, 200)
	for (const { name, created_at } of made)
		t.strictSame(
			body.filter((one: { name: string }) => one.name === name),
			[{ name, created_at }],
		)
})

void t.test('a name has 1 to 64 allowed characters, and is case-sensitive', async (t) => {
	for (const name of [
		'x',
		'7',
		'A'.repeat(64),
		'a.b_c-9',
		'Case',
		'case',
		'constructor',
		'hasOwnProperty',
		'toString',
	]) {
		assertError(t, await call('GET', `/v1/agents/${name}`), { status: 404, code: 'not_found' }, name)
		t.equal((await make(name)).name, name)
		t.equal((await call('GET', `/v1/agents/${name}`)).body.name, name)
	}
})

void t.test('PATCH changes only the supplied fields', async (t) => {
	const made = await make('changing', {
		persona: 'Old.',
		config: { model: 'm', provider: 'offline', temperature: 0.2 },
	})

	const first = await call('PATCH', '/v1/agents/changing', { config: { temperature: 1.5 } })
	t.equal(first.status, 200)
	t.strictSame(first.body, { ...made, config: { model: 'm', provider: 'offline', temperature: 1.5 } })

	const second = await call('PATCH', '/v1/agents/changing', { persona: 'New.' })
	t.strictSame(second.body, { ...first.body, persona: 'New.' })

	const third = await call('PATCH', '/v1/agents/changing', { config: { model: null, note: 'kept' } })
	t.strictSame(third.body.config, { provider: 'offline', temperature: 1.5, note: 'kept' }, 'null removes a key')

	const fourth = await call('PATCH', '/v1/agents/changing', {})
	const { warnings: _warned, ...kept } = third.body
	t.strictSame(fourth.body, kept)
	const { skills: _, ...read } = (await call('GET', '/v1/agents/changing')).body
	t.strictSame(read, kept)
})

void t.test('concurrent changes are all kept', async (t) => {
	await make('busy')
	const keys = Array.from({ length: 20 }, (_, n) => `key${n}`)
	const replies = await Promise.all(keys.map((key) => call('PATCH', '/v1/agents/busy', { config: { [key]: true } })))
	t.ok(replies.every((reply) => reply.status === 200))
	const { config } = (await call('GET', '/v1/agents/busy')).body
	t.strictSame(Object.keys(config).toSorted(), keys.toSorted())
})

void t.test('a second agent with the same name is refused', async (t) => {
	await make('twice', { persona: 'First.' })
	const second = await call('POST', '/v1/agents', { name: 'twice', persona: 'Second.' })
	assertError(t, second, { status: 409, code: 'already_exists', message: /"twice".*(another name|PATCH)/ })
	t.equal((await call('GET', '/v1/agents/twice')).body.persona, 'First.')

	const race = await Promise.all(Array.from({ length: 20 }, () => call('POST', '/v1/agents', { name: 'race' })))
	t.equal(race.filter((reply) => reply.status === 201).length, 1)
	t.equal(race.filter((reply) => reply.status === 409).length, 19)
})

void t.test('DELETE answers 204 without a body, and removes the agent', async (t) => {
	await make('leaving')
	const reply = await call('DELETE', '/v1/agents/leaving')
	t.equal(reply.status, 204)
	t.equal(reply.body, '')
	assertError(t, await call('GET', '/v1/agents/leaving'), { status: 404, code: 'not_found', message: /"leaving"/ })
	assertError(t, await call('DELETE', '/v1/agents/leaving'), { status: 404, code: 'not_found' })
	t.notOk((await call('GET', '/v1/agents')).body.some((one: { name: string }) => one.name === 'leaving'))
})

void t.test('deleting an agent stops its runs, and a new agent with its name inherits nothing', async (t) => {
	await make('reborn')
	const stream = await openStream(gateway.url, { query: { agent_id: 'reborn' } })
	t.teardown(() => stream.close())
	const start = async (prompt: string): Promise<string> =>
		(await call('POST', '/v1/agents/reborn/runs', { prompt })).body.run_id
	const done = await start('/tool memory.stm_write {"key":"colour","value":"blue"}')
	await stream.waitFor((event) => event.run_id === done && event.event_type === 'run.completed')
	const paused = await start('/tool ask {"question":"Still there?"}')
	const asked = await stream.waitFor('question.asked')
	await stream.waitFor('run.paused')
	const queued = await start('never begun')

	t.equal((await call('DELETE', '/v1/agents/reborn')).status, 204)
	for (const run of [paused, queued])
		await stream.waitFor((event) => event.run_id === run && event.event_type === 'run.stopped')
	await stream.waitFor('agent.deleted')
	for (const run of [done, paused, queued])
		assertError(t, await call('GET', `/v1/runs/${run}`), { status: 404, code: 'not_found' })
	for (const path of ['runs', 'history', 'questions'])
		assertError(t, await call('GET', `/v1/agents/reborn/${path}`), { status: 404, code: 'not_found' }, path)

	await make('reborn')
	for (const path of ['runs', 'history', 'questions'])
		t.strictSame((await call('GET', `/v1/agents/reborn/${path}`)).body, [], path)
	const answer = await call('POST', `/v1/agents/reborn/ask-responses/${asked.payload.question_id}`, { answer: 'yes' })
	assertError(t, answer, { status: 404, code: 'not_found' })
	const reading = await start('/tool memory.stm_read {"key":"colour"}')
	const result = await stream.waitFor((event) => event.run_id === reading && event.event_type === 'primitive.result')
	t.strictSame(JSON.parse(String(result.payload.result)), { key: 'colour', value: null })

	const { events } = (await call('GET', `/v1/audit?agent_id=reborn&run_id=${done}`)).body
	t.ok(events.length > 3, 'its events stay')
})

void t.test('creating, updating and deleting an agent emits events', async (t) => {
	const stream = await openStream(gateway.url, { query: { agent_id: 'watched' } })
	t.teardown(() => stream.close())
	await make('watched', { persona: 'secret persona', config: { model: 'm' } })
	await call('PATCH', '/v1/agents/watched', { persona: 'other' })
	await call('DELETE', '/v1/agents/watched')
	await stream.waitFor('agent.deleted')
	t.match(stream.events, [
		{ event_type: 'agent.created', agent_id: 'watched', run_id: null, sequence: 0 },
		{ event_type: 'agent.updated', payload: { fields: ['persona'] } },
		{ event_type: 'agent.deleted' },
	])
})

/** `path`: the field that the error names; empty if it names none. */
type InvalidValue = readonly [what: string, value: unknown, path: string, message: RegExp]

const invalidConfigs: InvalidValue[] = [
	['a text', 'x', 'config', /config must be of type object/],
	['a list', [], 'config', /config must be of type object/],
	['a number', 7, 'config', /config must be of type object/],
	['model: number', { model: 7 }, 'config.model', /config.model must be a string/],
	['model: empty', { model: '' }, 'config.model', /config.model/],
	['model: too long', { model: 'm'.repeat(201) }, 'config.model', /200/],
	['provider: list', { provider: ['offline'] }, 'config.provider', /config.provider must be a string/],
	['provider: too long', { provider: 'p'.repeat(65) }, 'config.provider', /64/],
	['temperature: below', { temperature: -0.1 }, 'config.temperature', /greater than or equal to 0/],
	['temperature: above', { temperature: 2.1 }, 'config.temperature', /less than or equal to 2/],
	['temperature: text', { temperature: '0.5' }, 'config.temperature', /config.temperature must be a number/],
	['temperature: bool', { temperature: true }, 'config.temperature', /config.temperature must be a number/],
	['max_tokens: 0', { max_tokens: 0 }, 'config.max_tokens', /greater than or equal to 1/],
	['max_tokens: fraction', { max_tokens: 1.5 }, 'config.max_tokens', /integer/],
	['fallback: text', { fallback: 'offline' }, 'config.fallback', /config.fallback must be an array/],
	['fallback: numbers', { fallback: ['a', 7] }, 'config.fallback.1', /config.fallback\[1\] must be a string/],
	['fallback: nine', { fallback: 'abcdefghi'.split('') }, 'config.fallback', /less than or equal to 8/],
	['limits: number', { limits: 5 }, 'config.limits', /config.limits must be of type object/],
	['limits.steps: 0', { limits: { steps: 0 } }, 'config.limits.steps', /greater than or equal to 1/],
	['limits.steps: 1,001', { limits: { steps: 1_001 } }, 'config.limits.steps', /less than or equal to 1000/],
	['limits.tokens: text', { limits: { tokens: '9' } }, 'config.limits.tokens', /must be a number/],
	['limits.wall_time_s: 0', { limits: { wall_time_s: 0 } }, 'config.limits.wall_time_s', /greater than or equal to 1/],
	['limits: unknown', { limits: { turns: 5 } }, 'config.limits.turns', /config.limits.turns is not allowed/],
	['too large', { note: 'x'.repeat(65 * 1024) }, '', /at most 65536/],
	['null', null, 'config', /config must be of type object/],
]
const invalidPersonas: InvalidValue[] = [
	['a number', 7, 'persona', /persona must be a string/],
	['a list', ['x'], 'persona', /persona must be a string/],
	['an object', {}, 'persona', /persona must be a string/],
	['a boolean', false, 'persona', /persona must be a string/],
	['10,241 bytes', 'x'.repeat(10_241), 'persona', /persona .*10240/],
	['10,241 bytes in fewer characters', `${'é'.repeat(5_120)}x`, 'persona', /persona .*10240/],
	['10,241 bytes of pairs', `${'😀'.repeat(2_560)}x`, 'persona', /persona .*10240/],
]

/** Asserts that the body is refused, and that the error names `field`, unless it is empty. */
async function refuses(
	t: Test,
	[method, path]: readonly [method: string, path: string],
	body: object,
	[what, field, message]: readonly [what: string, field: string, message: RegExp],
): Promise<void> {
	const wanted = { status: 400, code: 'invalid_request', message, ...(field !== '' && { path: field }) }
	assertError(t, await call(method, path, body), wanted, what)
}

const create = ['POST', '/v1/agents'] as const

void t.test('an invalid name is refused with the rule for names', async (t) => {
	const rule = /name must be 1 to 64 of A-Z a-z 0-9 - _ \. and begin with a letter or digit/
	const names = [
		'a'.repeat(65),
		' a',
		'a b',
		'a/b',
		'-a',
		'.a',
		'_a',
		'..',
		'ä',
		'a\n',
		'a\u0000',
		'😀',
		'\ud800',
		'a:b',
		'__proto__',
	]
	for (const name of names) await refuses(t, create, { name }, [JSON.stringify(name), 'name', rule])
	await refuses(t, create, { name: '' }, ['empty', 'name', /name/])
	for (const name of [7, null, true, ['a'], { a: 1 }])
		await refuses(t, create, { name }, [JSON.stringify(name), 'name', /name must be a string/])
	await refuses(t, create, {}, ['missing', 'name', /name is required/])
})

void t.test('an invalid persona, config or field is refused on creation', async (t) => {
	const name = 'bad'
	for (const [what, persona, ...error] of invalidPersonas) await refuses(t, create, { name, persona }, [what, ...error])
	for (const [what, config, ...error] of invalidConfigs) await refuses(t, create, { name, config }, [what, ...error])
	await refuses(t, create, { name, colour: 'red' }, ['unknown', 'colour', /colour is not allowed/])
	await refuses(t, create, { name, created_at: 'now' }, ['read-only', 'created_at', /not allowed/])
	assertError(t, await call('GET', '/v1/agents/bad'), { status: 404, code: 'not_found' })
})

void t.test('an invalid persona, config or field is refused on update, which changes nothing', async (t) => {
	const made = await make('steady', { persona: 'Stays.', config: { model: 'm' } })
	const update = ['PATCH', '/v1/agents/steady'] as const
	for (const [what, persona, ...error] of invalidPersonas) await refuses(t, update, { persona }, [what, ...error])
	for (const [what, config, ...error] of invalidConfigs) await refuses(t, update, { config }, [what, ...error])
	await refuses(t, update, { colour: 'red' }, ['unknown', 'colour', /colour is not allowed/])
	await refuses(t, update, { name: 'other' }, ['read-only', 'name', /name is not allowed/])
	t.strictSame((await call('GET', '/v1/agents/steady')).body, { ...made, skills: [] })
})

void t.test('the error lists all invalid fields', async (t) => {
	const reply = await call('POST', '/v1/agents', { name: '', persona: 7, config: { temperature: 3 }, colour: 'red' })
	const paths = reply.body.errors.map((one: { path: string }) => one.path)
	t.strictSame(new Set(paths), new Set(['name', 'persona', 'config.temperature', 'colour']))
	for (const one of reply.body.errors) t.match(reply.body.message, one.message)
})

void t.test('values at the limits are accepted', async (t) => {
	const persona = 'é'.repeat(5_120)
	const config = { temperature: 2, max_tokens: 1, fallback: [], limits: { steps: 1_000, wall_time_s: 86_400 } }
	t.match(await make('brim', { persona, config }), { persona, config })
	t.match(await make('brim-2', { persona: '', config: { temperature: 0 } }), {
		persona: '',
		config: { temperature: 0 },
	})
})

void t.test('an update that makes the config too large is refused', async (t) => {
	await make('growing', { config: { a: 'x'.repeat(40_000) } })
	const reply = await call('PATCH', '/v1/agents/growing', { config: { b: 'x'.repeat(40_000) } })
	assertError(t, reply, { status: 400, code: 'invalid_request', message: /config is \d+ bytes .*at most 65536/ })
	t.strictSame(Object.keys((await call('GET', '/v1/agents/growing')).body.config), ['a'])
})

void t.test('an unknown agent is 404 for every method, and an invalid name is 4xx', async (t) => {
	for (const [method, body] of [['GET'], ['PATCH', { persona: 'x' }], ['DELETE']] as const) {
		const reply = await call(method, '/v1/agents/nobody', body)
		assertError(t, reply, { status: 404, code: 'not_found', message: /there is no agent "nobody"/ }, method)
		for (const name of ['%00', 'a%2Fb', '%F0%9F%98%80', 'a'.repeat(65), 'a%20b', '..%2f..%2fetc'])
			assertError(
				t,
				await call(method, `/v1/agents/${name}`, body),
				{ status: 400, code: 'invalid_request', path: 'name' },
				name,
			)
		for (const name of ['%', '%E0%A4%A', '%zz', '%ff']) {
			const odd = await call(method, `/v1/agents/${name}`, body)
			t.ok(isProperResponse(odd) && odd.status >= 400, `${method} ${name}: ${odd.status}`)
		}
	}
})

void t.test('a body that is not a JSON object is refused', async (t) => {
	for (const [method, path] of [
		['POST', '/v1/agents'],
		['PATCH', '/v1/agents/ada'],
	] as const) {
		for (const text of [
			'{',
			'{"name":',
			'{"name":"a"} more',
			"{'name':'a'}",
			'{name:"a"}',
			'{"name":"a",}',
			'\u0000',
			'NaN',
		])
			assertError(
				t,
				await call(method, path, text),
				{ status: 400, code: 'invalid_request', message: /JSON/ },
				`${method} ${text}`,
			)
		for (const text of ['', 'null', '[]', '[{"name":"a"}]', '"ada"', '7', 'true']) {
			const reply = await call(method, path, text)
			assertError(
				t,
				reply,
				{ status: 400, code: 'invalid_request', message: /object|required/, path: '' },
				`${method} ${text}`,
			)
		}
		const broken = await call(method, path, Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]))
		assertError(t, broken, { status: 400, code: 'invalid_request' }, 'not UTF-8')
	}
})

void t.test('a body over 1 MiB is refused, and one of 1 MiB is validated', async (t) => {
	const withLength = (bytes: number): string => JSON.stringify({ name: 'x'.repeat(bytes - 11) })
	const over = await call('POST', '/v1/agents', withLength(1024 * 1024 + 1))
	assertError(t, over, { status: 413, code: 'payload_too_large', message: /at most 1 MiB; upload files/ })
	assertError(t, await call('POST', '/v1/agents', withLength(1024 * 1024)), {
		status: 400,
		code: 'invalid_request',
		path: 'name',
	})
	const bomb = gzipSync(Buffer.alloc(32 * 1024 * 1024, ' '))
	const packed = await call('POST', '/v1/agents', bomb, { headers: { 'content-encoding': 'gzip' } })
	assertError(
		t,
		packed,
		{ status: 413, code: 'payload_too_large', message: /at most 1 MiB/ },
		'a small body that decompresses to a large one',
	)
	const garbage = await call('POST', '/v1/agents', 'no gzip', { headers: { 'content-encoding': 'gzip' } })
	assertError(t, garbage, { status: 400, code: 'invalid_request' }, 'a body that does not match its content-encoding')
})

void t.test('a body with another content type, or none, is refused', async (t) => {
	const text = JSON.stringify({ name: 'typed' })
	for (const type of [
		'text/plain',
		'application/x-www-form-urlencoded',
		'multipart/form-data; boundary=x',
		'application/xml',
		'application/jsonp',
	]) {
		const reply = await call('POST', '/v1/agents', text, { headers: { 'content-type': type } })
		assertError(t, reply, { status: 415, code: 'unsupported_media_type' }, type)
	}
	const nonsense = await call('POST', '/v1/agents', text, { headers: { 'content-type': 'nonsense' } })
	assertError(t, nonsense, { status: 400, code: 'invalid_request', message: /content-type/ })
	const response = await fetch(`${gateway.url}/v1/agents`, { method: 'POST', body: new TextEncoder().encode(text) })
	const untyped = { status: response.status, headers: response.headers, body: await response.json() }
	assertError(t, untyped, { status: 415, code: 'unsupported_media_type', message: /content-type: application\/json/ })
	assertError(t, await call('GET', '/v1/agents/typed'), { status: 404, code: 'not_found' })
	const charset = await call('POST', '/v1/agents', text, {
		headers: { 'content-type': 'application/json; charset=utf-8' },
	})
	t.equal(charset.status, 201)
})

void t.test('JSON nested deeper than 64 levels is refused, and less deep JSON is stored unchanged', async (t) => {
	const nested = (levels: number): string => `{"name":"deep","config":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}}`
	for (const levels of [70, 5_000, 400_000]) {
		const reply = await call('POST', '/v1/agents', nested(levels))
		assertError(t, reply, { status: 400, code: 'invalid_request', message: /64 levels|JSON/ }, `${levels} levels`)
	}
	t.equal((await call('POST', '/v1/agents', nested(50))).status, 201)
	t.match(JSON.stringify((await call('GET', '/v1/agents/deep')).body.config), `${'['.repeat(50)}${']'.repeat(50)}`)
	const wide = `{"name":"wide","config":{"a":[${'0,'.repeat(150_000)}0]}}`
	assertError(t, await call('POST', '/v1/agents', wide), {
		status: 400,
		code: 'invalid_request',
		message: /values|bytes/,
	})
})

void t.test('all errors of a body are listed, but of very many unknown fields only the first', async (t) => {
	const keys = (count: number): Record<string, number> =>
		Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))
	const few = await call('POST', '/v1/agents', { name: 'ada lovelace', ...keys(3) })
	t.equal(few.body.errors.length, 4)
	const many = await call('POST', '/v1/agents', { name: 'many', ...keys(50_000) })
	assertError(t, many, { status: 400, code: 'invalid_request', message: /^k0 is not allowed$/ })
})

void t.test('keys such as __proto__ pollute no prototype', async (t) => {
	for (const [method, path] of [
		['POST', '/v1/agents'],
		['PATCH', '/v1/agents/ada'],
	] as const) {
		for (const text of [
			'{"name":"proto","__proto__":{"persona":"x"}}',
			'{"name":"proto","config":{"__proto__":{"polluted":true}}}',
			'{"name":"proto","constructor":{"prototype":{"polluted":true}}}',
		]) {
			assertError(t, await call(method, path, text), { status: 400, code: 'invalid_request' }, `${method} ${text}`)
		}
	}
	t.notOk('polluted' in {})
	const config = { constructor: 'c', toString: 't', hasOwnProperty: 1 }
	t.strictSame((await make('odd-keys', { config })).config, config)
	t.strictSame((await call('GET', '/v1/agents/odd-keys')).body.config, config)
})

void t.test('any text is returned as it was sent', async (t) => {
	for (const [at, persona] of [
		'\u0000\u001f',
		'\u2028\u2029',
		'naïve 😀 \u202e',
		'"\\/\b\f',
		'\ud800 alone',
		'${x} {{secret:A}}',
	].entries()) {
		t.equal((await make(`text-${at}`, { persona })).persona, persona)
		t.equal((await call('GET', `/v1/agents/text-${at}`)).body.persona, persona)
	}
})

void t.test('an unsupported method is refused', async (t) => {
	for (const [method, path] of [
		['PUT', '/v1/agents'],
		['DELETE', '/v1/agents'],
		['PATCH', '/v1/agents'],
		['POST', '/v1/agents/ada'],
		['PUT', '/v1/agents/ada'],
		['GET', '/v1/agents/ada/stop'],
		['POST', '/v1/agents/ada/history'],
	] as const) {
		const reply = await call(method, path, method === 'GET' ? undefined : {})
		t.ok(isProperResponse(reply), `${method} ${path}`)
		t.ok(reply.status === 404 || reply.status === 405, `${method} ${path}: ${reply.status}`)
	}
	t.equal((await call('GET', '/v1/agents/ada')).status, 200)
})

void t.test('each operation requires its scope', async (t) => {
	await make('scoped')
	const { token: read } = await addToken(gateway, ['agents:read'])
	const { token: write } = await addToken(gateway, ['agents:write'])
	for (const [method, path, body, scope] of [
		['GET', '/v1/agents', undefined, 'agents:read'],
		['GET', '/v1/agents/scoped', undefined, 'agents:read'],
		['GET', '/v1/agents/scoped/history', undefined, 'agents:read'],
		['POST', '/v1/agents', { name: 'scoped-2' }, 'agents:write'],
		['PATCH', '/v1/agents/scoped', { persona: 'x' }, 'agents:write'],
		['POST', '/v1/agents/scoped/reset', {}, 'agents:write'],
		['DELETE', '/v1/agents/scoped', undefined, 'agents:write'],
	] as const) {
		const [right, wrong] = scope === 'agents:read' ? [read, write] : [write, read]
		const reply = await call(method, path, body, { token: wrong })
		assertError(t, reply, { status: 403, code: 'forbidden', message: new RegExp(scope) }, `${method} ${path}`)
		const allowed = await call(method, path, body, { token: right })
		t.ok(allowed.status < 300, `${method} ${path} with ${scope}: ${allowed.status}`)
	}
})

const json = fc.jsonValue({ maxDepth: 4, stringUnit: arbitraryCharacter })
const field = fc.oneof(json, arbitraryText(), fc.double(), fc.constantFrom('ada', null, '', 0, -1, 1e308))
const fuzzedBody = fc.oneof(
	json,
	fc.record(
		{
			name: fc.oneof({ weight: 3, arbitrary: fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}$/) }, field),
			persona: field,
			config: fc.oneof(
				json,
				fc.dictionary(
					fc.oneof(
						fc.constantFrom('model', 'provider', 'temperature', 'max_tokens', 'fallback', 'limits'),
						fc.string(),
					),
					field,
				),
			),
		},
		{ requiredKeys: [] },
	),
	fc.dictionary(fc.oneof(fc.constantFrom('name', 'persona', 'config', '__proto__', 'constructor'), fc.string()), field),
)

const validChange = fc.record({
	persona: fc.oneof(arbitraryText({ maxLength: 200 }), fc.constant(null)),
	config: fc.record(
		{
			model: fc.stringMatching(/^[a-z]{1,20}$/),
			temperature: fc.double({ min: 0, max: 2, noNaN: true }),
			note: arbitraryText(),
		},
		{ requiredKeys: [] },
	),
})
/** Each makes a valid change invalid. */
const invalidField = fc.constantFrom<Record<string, unknown>>(
	{ persona: 7 },
	{ persona: ['text'] },
	{ config: 'text' },
	{ config: { temperature: 'warm' } },
	{ stranger: true },
)

/** Passes `RUNS` valid, invalid and random bodies to `accepts`. `required`: fields that a valid body needs. */
async function fuzz(t: Test, accepts: (body: unknown) => Promise<boolean>, required = () => ({})): Promise<void> {
	const counts = { valid: 0, invalid: 0, random: 0 }
	await fc.assert(
		fc.asyncProperty(
			validChange,
			invalidField,
			fc.oneof(fuzzedBody, arbitraryText({ maxLength: 200 })),
			async (...bodies) => {
				const [valid, invalid, random] = bodies
				if (await accepts({ ...required(), ...valid })) counts.valid++
				if (!(await accepts({ ...required(), ...valid, ...invalid }))) counts.invalid++
				if (await accepts(random)) counts.random++
			},
		),
		{ numRuns: RUNS, ...(process.env.FUZZ_RUNS === undefined && { seed: 1 }) },
	)
	t.equal(counts.valid, RUNS, 'every valid body is accepted')
	t.equal(counts.invalid, RUNS, 'every invalid body is refused')
	t.comment(`${counts.random} of ${RUNS} random bodies were accepted`)
}

const textOf = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))

void t.test('POST accepts or properly refuses any body, and stores what it returns', async (t) => {
	let names = 0
	const accepts = async (body: unknown): Promise<boolean> => {
		const reply = await call('POST', '/v1/agents', textOf(body))
		if (reply.status !== 201) return assertRefused(reply)
		const { skills: _, ...rest } = (await send(`${gateway.url}/v1/agents/${reply.body.name}`, 'GET')).body
		const { warnings: _warned, ...kept } = reply.body
		assert.deepEqual(rest, kept)
		return true
	}
	await fuzz(t, accepts, () => ({ name: `valid-${++names}` }))
})

void t.test('PATCH accepts or properly refuses any body, and stores what it returns', async (t) => {
	await make('fuzzed')
	await fuzz(t, async (body) => {
		const reply = await call('PATCH', '/v1/agents/fuzzed', textOf(body))
		if (reply.status !== 200) return assertRefused(reply)
		const { skills: _, ...rest } = (await call('GET', '/v1/agents/fuzzed')).body
		const { warnings: _warned, ...kept } = reply.body
		assert.deepEqual(rest, kept)
		return true
	})
})

function assertRefused(reply: Reply<Answer>): false {
	assert.ok(isProperResponse(reply) && reply.status >= 400, `answered with ${reply.status}`)
	return false
}
