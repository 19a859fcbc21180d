/** Parts that need no server: definitions, pins, names, results, forms, environments and limits. */
import { McpError } from '@modelcontextprotocol/sdk/types.js'
import type { ElicitRequestFormParams, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import t from 'tap'
import { encodeValue } from '../../../core/store/codec.ts'
import { ServerConnection } from '../../../plugins/mcp/connection.ts'
import type { ConnectionServices } from '../../../plugins/mcp/connection.ts'
import { openConnectionRegistry } from '../../../plugins/mcp/connection-registry.ts'
import { openRefresher } from '../../../plugins/shared/refresher.ts'
import { readDefinitions } from '../../../plugins/mcp/definitions.ts'
import { elicit } from '../../../plugins/mcp/elicitation.ts'
import { checkVariable, environmentOf } from '../../../plugins/mcp/environment.ts'
import { hintOf, readAnswer } from '../../../plugins/mcp/fields.ts'
import { toolNames } from '../../../plugins/mcp/names.ts'
import { openCallTimer } from '../../../plugins/mcp/call-timer.ts'
import { acceptHeld, compare, offered } from '../../../plugins/mcp/pins.ts'
import type { Pins } from '../../../plugins/mcp/pins.ts'
import { textOfResult } from '../../../plugins/mcp/results.ts'
import type { McpRecord } from '../../../plugins/mcp/records.ts'
import { otherRevision } from '../../../plugins/mcp/revision.ts'
import { toolsOf } from '../../../plugins/mcp/tools.ts'
import { openTail } from '../../../plugins/mcp/tail.ts'
import { openThrottle } from '../../../plugins/mcp/throttle.ts'
import { wireName } from '../../../sandbox/wire-name.ts'
import { watchDeadlines } from '../../support/deadlines.ts'

const unchanged = (text: string): string => text

void t.test('a list of tools can contain anything; tools that cannot be offered are reported', async (t) => {
	const good = { name: 'a', inputSchema: { type: 'object' } }
	let deep: object = {}
	for (let level = 0; level < 40; level++) deep = { deep }
	const { definitions, refused } = readDefinitions([
		good,
		null,
		'tool',
		{ inputSchema: {} },
		{ name: 'b c', inputSchema: {} },
		{ name: 'no-schema' },
		{ name: 'a-list', inputSchema: { type: 'array' } },
		{ name: 'odd', inputSchema: { properties: 'x' } },
		{ name: 'deep', inputSchema: deep },
		{ name: 'long', description: 'x'.repeat(70_000), inputSchema: {} },
		{ name: 'task', inputSchema: {}, execution: { taskSupport: 'required' } },
		{ ...good, description: 'again' },
		{ name: '__proto__', title: 'Titled', inputSchema: { properties: { x: {} } }, annotations: { readOnlyHint: true } },
	])
	t.match(definitions, [
		{ name: 'a', description: 'The tool a.', input_schema: { type: 'object', properties: {} }, annotations: {} },
		{
			name: '__proto__',
			description: 'Titled',
			input_schema: { properties: { x: {} }, type: 'object' },
			annotations: { readOnlyHint: true },
		},
	])
	t.equal(refused.length, 11)
	t.match(
		refused.join('\n'),
		/no-schema does not accept an object[^]*deep has[^]*long has[^]*task requires execution as a task[^]*a is listed twice/,
	)
	const many = Array.from({ length: 300 }, (_, n) => ({ name: `t${n}`, inputSchema: {} }))
	t.equal(readDefinitions(many).definitions.length, 256)
})

void t.test('only the latest of many agents without servers are cached', async (t) => {
	const reads = new Map<string, number>()
	const registry = openConnectionRegistry(
		{
			async list({ uid }) {
				reads.set(uid, (reads.get(uid) ?? 0) + 1)
				return []
			},
		},
		() => Promise.reject(new Error('there is no server to connect to')),
	)
	const agents = Array.from({ length: 1_500 }, (_, n) => ({ name: `agent-${n}`, uid: `uid-${n}` }))
	const [first, ...rest] = agents as [(typeof agents)[number], ...typeof agents]
	const last = agents.at(-1) ?? first
	const added = await registry.of(first, true)
	for (const agent of rest) await registry.of(agent)
	for (const agent of [first, ...rest.slice(0, 1), last]) await registry.of(agent)
	t.equal(reads.get('uid-0'), 1, 'the list of an agent whose servers are being changed is kept')
	t.equal(await registry.of(first), added, 'the same list')
	t.equal(reads.get('uid-1'), 2, 'dropped from the cache, and read again')
	t.equal(reads.get(last.uid), 1, 'cached')
	t.not(await registry.of(last), await registry.of(last), 'a cached list is copied')
	t.not(await registry.of(last, true), undefined)
	t.equal(await registry.of(last), await registry.of(last, true), 'a kept list is shared')
})

void t.test('no server of an agent starts until all of them can be loaded', async (t) => {
	const started: string[] = []
	let isBroken = true
	const registry = openConnectionRegistry(
		{ list: async () => ['one', 'two'].map((id) => ({ id, enabled: true }) as McpRecord) },
		async (_, record) => {
			if (record.id === 'two' && isBroken) throw new Error('the store is away')
			return { record, start: async () => void started.push(record.id) } as unknown as ServerConnection
		},
	)
	const agent = { name: 'ada', uid: 'u-1' }
	await t.rejects(registry.of(agent), { message: 'the store is away' })
	isBroken = false
	t.equal((await registry.of(agent)).size, 2)
	t.strictSame(started, ['one', 'two'], 'each once')
})

void t.test('an enabled server is connecting from its creation on', (t) => {
	const services = {
		config: { call_timeout_s: 60, max_call_s: 600 },
		signal: AbortSignal.abort(),
	} as ConnectionServices
	const agent = { name: 'ada', uid: 'u-1' }
	const statusOf = (enabled: boolean) => {
		const connection = new ServerConnection({ name: 'own', enabled } as McpRecord, agent, undefined, services)
		const seen = connection.status
		void connection.start()
		return [seen, connection.status]
	}
	t.strictSame(
		statusOf(true),
		['connecting', 'disabled'],
		'a stopping gateway does not start it, so nothing must wait for it',
	)
	t.strictSame(statusOf(false), ['disabled', 'disabled'])
	t.end()
})

void t.test('arguments that a person edited are checked by the schema, except for its patterns', async (t) => {
	const { definitions } = readDefinitions([
		{ name: 'a', inputSchema: { properties: { text: { type: 'string', pattern: '^(a+)+$' } }, required: ['text'] } },
	])
	const connection = { record: { name: 'own' }, offered: () => definitions } as unknown as ServerConnection
	const [tool] = toolsOf([connection], { find: () => undefined })
	const check = async (args: object): Promise<void> => tool?.check?.(args as Record<string, unknown>)
	await t.rejects(check({ text: 1 }), {
		code: 'invalid_arguments',
		message: /of mcp__own__a are wrong: text must be string/,
	})
	await t.rejects(check({}), { code: 'invalid_arguments', message: /text is missing/ })
	await t.resolves(check({ text: 'aaa!' }), 'a pattern could take forever; the server checks it')
})

void t.test('supported revisions are read only from a refusal of the revision', async (t) => {
	const posted = (body: unknown): Error => new Error(`Error POSTing to endpoint: ${JSON.stringify(body)}`)
	const refusal = (supported: unknown) => posted({ error: { code: -32022, message: 'x', data: { supported } } })
	t.match(otherRevision(refusal(['2026-07-28', 5, 'a b']))?.message, /supports only revision 2026-07-28 of MCP/)
	t.match(otherRevision(new McpError(-32022, 'x', { supported: ['2026-07-28'] })), { code: 'mcp_failed' })
	const unrelated = [
		refusal([]),
		refusal('2026-07-28'),
		posted({ error: null }),
		posted('{"error"'),
		new Error('{'.repeat(1e6)),
	]
	for (const error of unrelated) t.equal(otherRevision(error), undefined)
})

void t.test('a digest depends on every value, and not on the order of keys', async (t) => {
	const digestOf = (tool: object): string | undefined => readDefinitions([tool]).definitions[0]?.digest
	const first = {
		name: 'a',
		description: 'd',
		inputSchema: { type: 'object', properties: { x: { type: 'string', title: 'X' } } },
	}
	const reordered = {
		inputSchema: { properties: { x: { title: 'X', type: 'string' } }, type: 'object' },
		description: 'd',
		name: 'a',
	}
	t.equal(digestOf(first), digestOf(reordered))
	t.equal(digestOf(first), digestOf({ ...first, _meta: { now: 1 }, icons: [] }))
	for (const change of [
		{ description: 'D' },
		{ title: 't' },
		{ annotations: { readOnlyHint: true } },
		{ outputSchema: {} },
		{ inputSchema: { type: 'object', properties: { y: { type: 'string', title: 'X' } } } },
	]) {
		t.not(digestOf({ ...first, ...change }), digestOf(first), JSON.stringify(change))
	}
})

void t.test('pins: the first definition counts, even after the tool was missing', async (t) => {
	const tools = (...listed: [name: string, description: string][]) =>
		readDefinitions(listed.map(([name, description]) => ({ name, description, inputSchema: {} }))).definitions
	const first = compare(undefined, tools(['a', 'one'], ['b', 'one']))
	t.strictSame([first.held, first.changed], [[], true])
	t.equal(compare(first.pins, tools(['a', 'one'], ['b', 'one'])).changed, false)
	const missing = compare(first.pins, tools(['b', 'one'], ['c', 'new']))
	t.strictSame(
		offered(missing.pins).map(({ name }) => name),
		['b', 'c'],
		'new tools are offered, missing ones are not',
	)
	const back = compare(missing.pins, tools(['a', 'two'], ['b', 'one']))
	t.strictSame(back.held, ['a'])
	t.strictSame(compare(back.pins, tools(['a', 'two'], ['b', 'one'])).held, [], 'reported once')
	t.strictSame(compare(back.pins, tools(['a', 'three'], ['b', 'one'])).held, ['a'], 'and again after another change')
	const none = acceptHeld(back.pins, ['unknown'])
	t.strictSame(none.accepted, [])
	const all = acceptHeld(back.pins)
	t.strictSame(all.accepted, ['a'])
	t.equal(offered(all.pins).find(({ name }) => name === 'a')?.description, 'two')
	const unseen = { tools: back.pins.tools.map((pin) => ({ ...pin, listed: false })) } // as version 0.1.0 stored them
	t.strictSame(acceptHeld(unseen).accepted, [])
})

void t.test('pins: whatever a server lists, its pins fit into a record', async (t) => {
	const list = (round: number, description: string) =>
		readDefinitions(
			Array.from({ length: 15 }, (_, at) => ({ name: `tool${round}.${at}`, description, inputSchema: {} })),
		).definitions
	const rounds = Array.from({ length: 34 }, (_, round) => round)
	const listed = (description: string): Pins | undefined =>
		rounds.reduce<Pins | undefined>((pins, round) => compare(pins, list(round, description)).pins, undefined)
	const long = '字'.repeat(60_000)
	const pins = listed(long)
	t.ok(encodeValue(pins, 0))
	t.match(compare(pins, list(33, long)).refused[0], /^tool33.0 is new/)
	t.equal(offered(compare(pins, list(0, long)).pins).length, 15, 'known tools stay')
	let changed = listed('short') as Pins
	for (const round of rounds) {
		const next = compare(changed, list(round, long))
		t.equal(next.held.length, 15)
		changed = next.pins
	}
	t.ok(encodeValue(changed, 0), 'also with changed definitions')
})

void t.test('tool names stay distinct in the form that models get', async (t) => {
	const names = toolNames([
		{ server: 'a', tool: 'b__c' },
		{ server: 'a__b', tool: 'c' },
		{ server: 's', tool: 'x.y' },
		{ server: 's', tool: 'x_y' },
		{ server: 's'.repeat(64), tool: 't'.repeat(100) },
		{ server: 's'.repeat(64), tool: `${'t'.repeat(99)}u` },
	])
	t.equal(names[0], 'mcp__a__b__c')
	t.match(names[1], /^mcp__a__b__c_[0-9a-f]{8}$/)
	t.equal(new Set(names.map(wireName)).size, names.length)
	for (const name of names) t.ok(name.length <= 128, name)
})

void t.test('any result becomes text', async (t) => {
	const cases: [result: Record<string, unknown>, text: string | RegExp][] = [
		[{}, ''],
		[{ content: 'text' }, ''],
		[
			{
				content: [
					{ type: 'text', text: 'a' },
					{ type: 'text', text: 'b' },
				],
			},
			'a\nb',
		],
		[
			{ content: [null, 1, {}, { type: 'text' }, { type: 'hologram' }] },
			/^(\[content of the type unnamed: not shown\]\n){3}\[content of the type hologram/,
		],
		[{ content: [{ type: 'audio', mimeType: 'audio/wav', data: 'AAAA' }] }, '[audio, audio/wav, 3 bytes: not shown]'],
		[
			{ content: [{ type: 'resource', resource: { uri: 'x://1', blob: 'AAAA' } }] },
			'[resource x://1, of unknown type, 3 bytes: not shown]',
		],
		[{ structuredContent: { a: 1 } }, '{"a":1}'],
		[{ content: [{ type: 'text', text: '{ "a": 1 }' }], structuredContent: { a: 1 } }, '{ "a": 1 }'],
		[{ content: [{ type: 'text', text: 'It is 1.' }], structuredContent: { a: 1 } }, 'It is 1.\n{"a":1}'],
		[{ content: [{ type: 'text', text: 'x'.repeat(70_000) }] }, 'x'.repeat(70_000)],
	]
	for (const [result, text] of cases) {
		const shown = textOfResult(result, unchanged)
		if (typeof text === 'string') t.equal(shown, text)
		else t.match(shown, text)
	}
})

void t.test('structured content that the text repeats is shown once', async (t) => {
	const block = (text: string) => ({ type: 'text', text })
	const repeated: [unknown[], unknown, string][] = [
		// Servers wrap a result that is not an object.
		[[block('sunny')], { result: 'sunny' }, 'sunny'],
		[[block('42')], { result: 42 }, '42'],
		[[block('[1, 2]')], { result: [1, 2] }, '[1, 2]'],
		// One block for each item.
		[[block('a'), block('{"b":1}')], { result: ['a', { b: 1 }] }, 'a\n{"b":1}'],
		[[block('a'), block('b')], ['a', 'b'], 'a\nb'],
	]
	for (const [content, structuredContent, text] of repeated) {
		t.equal(textOfResult({ content, structuredContent }, unchanged), text)
	}
	const large = { rows: Array.from({ length: 10_000 }, (_, at) => ({ at, name: `row ${at}` })) }
	const text = JSON.stringify(large, null, 2)
	t.equal(textOfResult({ content: [block(text)], structuredContent: large }, unchanged), text)

	const different: [unknown[], unknown][] = [
		[[block('sunny')], { result: 'rainy' }],
		[[block('sunny')], { result: 'sunny', degrees: 21 }],
		[[block('a'), block('b')], { result: ['a', 'c'] }],
		[[block('a')], { result: ['a', 'b'] }],
	]
	for (const [content, structuredContent] of different) {
		const shown = textOfResult({ content, structuredContent }, unchanged)
		t.ok(shown.endsWith(`\n${JSON.stringify(structuredContent)}`), shown)
	}
})

void t.test('base64 in structured content is replaced by its size', async (t) => {
	const bytes = Buffer.from(Array.from({ length: 600 }, (_, at) => (at * 37) % 256))
	const base64 = bytes.toString('base64')
	const lines = base64.replaceAll(/.{76}/g, '$&\r\n')
	const forms: unknown[] = [
		base64,
		bytes.toString('base64url'),
		lines,
		`data:image/png;base64,${base64}`,
		'A'.repeat(800),
		`![plot](data:image/png;base64,${base64})`,
		`plot:\n${base64}\nend`,
	]
	for (const form of forms) {
		for (const content of [[], [{ type: 'text', text: JSON.stringify({ plot: form, title: 'Sales' }, null, 2) }]]) {
			const shown = textOfResult({ content, structuredContent: { plot: form, title: 'Sales' } }, unchanged)
			t.match(shown, /\[6\d\d bytes: not shown\]/, String(form))
			t.ok(shown.length < 150, `${shown.length} characters`)
			t.match(JSON.parse(shown), { title: 'Sales' })
		}
	}
	// Short data, where the fields or the address say that it is base64.
	t.equal(
		textOfResult({ structuredContent: { icon: { mimeType: 'image/gif', data: 'R0lGODlh' } } }, unchanged),
		'{"icon":{"mimeType":"image/gif","data":"[6 bytes: not shown]"}}',
	)
	t.equal(
		textOfResult({ structuredContent: { url: 'data:image/gif;base64,R0lGODlh' } }, unchanged),
		'{"url":"data:image/gif;base64,[6 bytes: not shown]"}',
	)
	// Text that only resembles base64 is shown.
	const plain = { digest: 'a1'.repeat(64), rule: '-'.repeat(500), prose: 'one word after another '.repeat(40) }
	t.equal(textOfResult({ structuredContent: plain }, unchanged), JSON.stringify(plain))
	// A secret of which only a part is omitted must not remain in part.
	const secret = `se.cret${base64}`
	t.equal(
		textOfResult({ structuredContent: { secret } }, (text) => text.replaceAll(secret, '[redacted]')),
		'{"secret":"[redacted]"}',
	)
})

void t.test('an answer is parsed according to the schema of its field', async (t) => {
	const read = (schema: Record<string, unknown>, answer: string) =>
		readAnswer({ name: 'f', schema, required: true, scrub: unchanged }, answer)
	const choice = {
		type: 'string',
		oneOf: [
			{ const: 'h1', title: 'Superman' },
			{ const: 'h2', title: 'Lantern' },
		],
	}
	const several = { type: 'array', minItems: 1, maxItems: 2, items: { anyOf: choice.oneOf } }
	const valid: [Record<string, unknown>, string, unknown][] = [
		[{ type: 'string' }, ' as it is ', ' as it is '],
		[{ type: 'integer' }, ' 42 ', 42],
		[{ type: 'number', minimum: 0, maximum: 1 }, '0.5', 0.5],
		[{ type: 'boolean' }, 'Yes', true],
		[{ type: 'boolean' }, 'FALSE', false],
		[choice, 'superman', 'h1'],
		[choice, 'h2', 'h2'],
		[several, 'Superman, h2', ['h1', 'h2']],
		[{ type: 'array', items: { type: 'string', enum: ['x'] } }, '', []],
	]
	for (const [schema, answer, value] of valid)
		t.strictSame(read(schema, answer), { value }, `${JSON.stringify(schema)} ${answer}`)
	const invalid: [Record<string, unknown>, string][] = [
		[{ type: 'integer' }, '1.5'],
		[{ type: 'integer' }, ''],
		[{ type: 'number' }, 'Infinity'],
		[{ type: 'number', minimum: 1 }, '0'],
		[{ type: 'number', maximum: 1 }, '2'],
		[{ type: 'boolean' }, 'perhaps'],
		[{ type: 'string', minLength: 3 }, 'ab'],
		[{ type: 'string', maxLength: 3 }, 'abcd'],
		[choice, 'Batman'],
		[several, ''],
		[several, 'Superman, Batman'],
		[several, 'h1, h2, h1'],
	]
	for (const [schema, answer] of invalid) t.ok('problem' in read(schema, answer), `${JSON.stringify(schema)} ${answer}`)
	t.strictSame(hintOf({ name: 'f', schema: choice, required: true, scrub: unchanged }).options, ['Superman', 'Lantern'])
	t.notOk(hintOf({ name: 'f', schema: several, required: true, scrub: unchanged }).options)
})

void t.test('a form is cancelled after three invalid answers, and declined if it cannot be shown', async (t) => {
	const request = (properties: object, required: string[] = []) =>
		({
			message: 'm'.repeat(10_000),
			requestedSchema: { type: 'object', properties, required },
		}) as ElicitRequestFormParams
	const ask = async (
		form: ElicitRequestFormParams,
		answer: string,
	): Promise<{ result: ElicitResult; questions: string[] }> => {
		const questions: string[] = []
		const result = await elicit(form, 'own', String, async ({ question }) => {
			questions.push(question)
			return answer
		})
		return { result, questions }
	}
	const invalid = await ask(request({ age: { type: 'integer' } }, ['age']), 'young')
	t.strictSame([invalid.result, invalid.questions.length], [{ action: 'cancel' }, 3])
	const wide = Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`f${n}`, { type: 'string' }]))
	t.strictSame(await ask(request(wide), 'x'), { result: { action: 'decline' }, questions: [] })
	const long = await ask(
		request({ f: { type: 'string', description: 'd'.repeat(5_000), default: 'e'.repeat(5_000) } }),
		'x',
	)
	t.ok((long.questions[0]?.length ?? 0) < 4_000, 'it fits into a question')
	t.match(long.questions[0], /"decline" refuses\.$/)
	for (const url of [
		'javascript:alert(1)',
		'file:///etc/passwd',
		'no address',
		`https://x.test/${'y'.repeat(3_000)}`,
	]) {
		const visit = await elicit({ mode: 'url', message: 'm', url, elicitationId: 'e' }, 'own', String, () =>
			Promise.reject(new Error('asked')),
		)
		t.strictSame(visit, { action: 'decline' }, url.slice(0, 40))
	}
})

void t.test('the environment has the proxy and the certificates of the gateway, without passwords', async (t) => {
	const proxy = 'http://proxy.example.com:3128'
	const own = {
		HTTPS_PROXY: proxy,
		https_proxy: proxy,
		NO_PROXY: 'intranet.example.com',
		NODE_EXTRA_CA_CERTS: '/ca.pem',
		SSL_CERT_FILE: '/ca.pem',
	}
	t.strictSame(environmentOf(own, {}), own)
	t.strictSame(environmentOf(own, { HTTPS_PROXY: '' }), {
		HTTPS_PROXY: '',
		NO_PROXY: 'intranet.example.com',
		NODE_EXTRA_CA_CERTS: '/ca.pem',
		SSL_CERT_FILE: '/ca.pem',
	})
	for (const address of ['http://me:password@proxy.example.com:3128', 'me:password@proxy.example.com:3128'])
		t.strictSame(environmentOf({ http_proxy: address, ALL_PROXY: address }, {}), {})
	const named = { HTTPS_PROXY: 'http://me:password@proxy.example.com:3128' }
	t.strictSame(environmentOf({}, named), named)
})

void t.test('the environment has only safe variables, and none that runs code', async (t) => {
	const own = {
		PATH: '/bin',
		HOME: '/root',
		SECRET: 'x',
		NODE_OPTIONS: '-r x',
		SHELL: '() { :; }; echo',
		SVC_HOME: '/s',
	}
	t.strictSame(environmentOf(own, { LEVEL: 'x' }), { HOME: '/root', PATH: '/bin', LEVEL: 'x' })
	for (const name of [
		'NODE_OPTIONS',
		'Node_Options',
		'LD_PRELOAD',
		'DYLD_INSERT_LIBRARIES',
		'BASH_ENV',
		'PYTHONPATH',
		'PERL5OPT',
		'RUBYOPT',
		'npm_config_prefix',
		'NPM_CONFIG_PREFIX',
		'JAVA_TOOL_OPTIONS',
		'GIT_SSH_COMMAND',
		'SVC_HOME',
	]) {
		t.throws(() => checkVariable(name), { code: 'invalid_request' }, name)
	}
	for (const name of ['GITHUB_TOKEN', 'LEVEL', 'MEMORY_FILE_PATH', 'NODE_ENV', 'PATH', 'GIT_AUTHOR_NAME'])
		checkVariable(name)
})

void t.test('call timer: pauses stop the clock; each limit is named when it is reached', async (t) => {
	const deadlines = watchDeadlines(t, 3_002)
	let expired: string | undefined
	const timer = openCallTimer({ idle_ms: 3_002, total_ms: 10_000 }, (limit) => (expired = limit))
	t.equal(deadlines.pending(), 1)
	const [resume, resumeOther] = [timer.pause(), timer.pause()]
	t.equal(deadlines.pending(), 0, 'paused')
	resume()
	resume()
	t.equal(deadlines.pending(), 0, 'until each pause has ended')
	resumeOther()
	deadlines.expire()
	t.match(expired, /3\.002 s without progress/)

	const total = Promise.withResolvers<string>()
	openCallTimer({ idle_ms: 40, total_ms: 40 }, total.resolve)
	t.match(await total.promise, /0\.04 s in total/)
})

void t.test('a refresher runs one call at a time, and one more for all requests in the meantime', async (t) => {
	let runs = 0
	let atOnce = 0
	const done = Promise.withResolvers<void>()
	const refresh = openRefresher(1, async () => {
		t.equal(++atOnce, 1)
		await new Promise((resolve) => setImmediate(resolve))
		atOnce--
		if (++runs === 2) done.resolve()
	})
	for (let n = 0; n < 10; n++) refresh()
	const alive = setInterval(() => {}, 1_000) // the refresher's timer does not keep the process alive
	await done.promise
	clearInterval(alive)
	t.equal(runs, 2)
})

void t.test('a throttle waits for the rest of its window; a tail keeps the end', async (t) => {
	let now = 0
	const throttle = openThrottle(() => now)
	t.strictSame(
		Array.from({ length: 99 }, () => throttle(10)).filter((wait) => wait > 0),
		[],
	)
	now = 6
	t.equal(throttle(10), 14)
	now = 20
	t.equal(throttle(10), 0)
	t.equal(throttle(5 * 1024 * 1024), 20)
	now = 40
	t.equal(throttle(10, 100), 20)

	const tail = openTail(10)
	tail.push('one\n')
	t.equal(tail.text(unchanged), 'one\n')
	for (let n = 0; n < 100; n++) tail.push(`line ${n}\n`)
	t.equal(tail.text(unchanged), 'line 99\n')
	const masked = (text: string): string => text.replaceAll('secret', '***')
	tail.push(`${'-'.repeat(30)}secret-end`)
	t.equal(tail.text(masked), '---***-end', 'it is redacted before it is cut')
})
