/** What servers can request if an operator allows it: answers of the agent's model (sampling), and folders (roots). */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { addToken } from '../../support/add.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { add, callTool, servers, stdio, until } from '../../support/mcp.ts'
import { assertError } from '../../support/error-response.ts'
import { follow } from '../../support/runs.ts'
import { chatCompletion, startScriptedModels } from '../../support/scripted-model.ts'
import { eventually } from '../../support/wait.ts'

const models = await startScriptedModels()
/** Calls the tool of a prompt such as `/tool name {}`, and answers everything else. 18 tokens a call. */
const { url: base_url, requests } = models.add(({ body }, n) => {
	const last = body.messages.at(-1)
	const [, name, args] = /\/tool (\S+) (.*)$/.exec(last.role === 'user' ? last.content : '') ?? []
	const message =
		name === undefined
			? { content: `heard ${last.content}` }
			: { content: null, tool_calls: [{ id: `call-${n}`, type: 'function', function: { name, arguments: args } }] }
	return chatCompletion(message, 'stop', { prompt_tokens: 11, completion_tokens: 7 })
})
const held = await startManualModel()
const gateway = await startGateway({
	config: `
default_provider: scripted
providers:
  scripted: {kind: openai, base_url: '${base_url}', model: m, compat: {streaming: false}}
  held: {kind: openai, base_url: '${held.url}', model: m}
mcp: {max_samplings_per_run: 3, max_sampling_tokens: 50}
`,
})
t.teardown(async () => {
	await gateway.stop()
	await Promise.all([models.stop(), held.stop()])
})

const sdkServer = (fields: object = {}) => ({ ...stdio('own', servers.sdk), ...fields })
const message = (role: string, text: string) => ({ role, content: { type: 'text', text } })
const sample = (params: object, times = 1) => ({ params: { maxTokens: 1_000, ...params }, times })
const hello = sample({ messages: [message('user', 'Hello')] })
const outcomes = ({ result }: Answer): Answer => JSON.parse(result)

void t.test('an allowed server can sample, and gets no data of the agent', async (t) => {
	const ada = await follow(t, gateway, 'ada', { persona: 'Ada has a private persona.' })
	const { id } = await add(ada, sdkServer({ sampling: true }))
	t.match((await ada.call(`mcp/${id}`)).body, { sampling: true, roots: [] })
	t.strictSame(outcomes(await callTool(ada, 'mcp__own__client')).sampling, {})
	const before = requests.length
	const messages = [message('user', 'One'), message('assistant', 'Two'), message('user', 'Three')]
	const called = await callTool(
		ada,
		'mcp__own__sample',
		sample({ messages, systemPrompt: 'Be short.', temperature: 0.5 }),
	)
	const answer = {
		role: 'assistant',
		content: { type: 'text', text: 'heard Three' },
		model: 'm',
		stopReason: 'endTurn',
	}
	t.match(outcomes(called), [answer])

	const sent = requests.slice(before).map(({ body }) => body)
	const request = sent.find((body: Answer) => body.messages[0].content === 'Be short.')
	t.strictSame(request.messages, [
		{ role: 'system', content: 'Be short.' },
		{ role: 'user', content: 'One' },
		{ role: 'assistant', content: 'Two' },
		{ role: 'user', content: 'Three' },
	])
	t.match(request, { max_tokens: 50, temperature: 0.5, tools: undefined })

	await callTool(ada, 'mcp__own__sample', hello)
	const [plain] = requests.map(({ body }) => body).filter((body) => body.messages.at(-1).content === 'Hello')
	t.notMatch(JSON.stringify(plain), /private persona|\/tool/)

	const runs = (await ada.call('runs')).body as Answer[]
	const sampled = runs.filter(({ trigger }) => trigger === 'sampling')
	t.equal(sampled.length, 2)
	t.match(sampled, [{ status: 'completed' }, { status: 'completed' }])
	const samplings = ada.stream.events.filter(({ event_type }) => event_type === 'mcp.sampling')
	t.strictSame(
		new Set(samplings.map(({ payload }) => payload.sampling_run_id)),
		new Set(sampled.map(({ run_id }) => run_id)),
	)
	const { total } = (await gateway.request('GET', '/v1/usage?agent_id=ada')).body
	t.match(total, { calls: 8, input_tokens: 88, output_tokens: 56 }, 'three runs of two calls each, and two requests')
	const { conversations } = (await ada.call('conversations')).body
	t.notOk(conversations.some((one: Answer) => one.conversation.startsWith('sampling')))
})

void t.test('sampling has limits per run and per request', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	await add(bea, sdkServer({ sampling: true }))
	const five = outcomes(await callTool(bea, 'mcp__own__sample', { ...hello, times: 5 }))
	t.match(five.slice(0, 3), [{ role: 'assistant' }, { role: 'assistant' }, { role: 'assistant' }])
	const over = { code: -1, message: /3 requests for sampling.*mcp\.max_samplings_per_run/ }
	t.match(five.slice(3), [over, over])
	t.match(
		outcomes(await callTool(bea, 'mcp__own__sample', hello)),
		[{ role: 'assistant' }],
		'the next run has its own count',
	)

	const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' }
	const refusals: [object, RegExp][] = [
		[{ messages: [{ role: 'user', content: image }] }, /only text messages/],
		[{ messages: [message('assistant', 'Me last')] }, /last message must be a text with the role user/],
		[{ messages: [] }, /last message/],
		[{ messages: [message('user', 'x')], maxTokens: 0 }, /maxTokens must be at least 1/],
	]
	for (const [params, why] of refusals)
		t.match(outcomes(await callTool(bea, 'mcp__own__sample', sample(params))), [{ code: -32602, message: why }])
	const long = outcomes(await callTool(bea, 'mcp__own__sample', { ...hello, size: 300_000 }))
	t.match(long, [{ code: -32602, message: /at most 102400 characters together/ }])
})

void t.test('the token limit of the run applies to sampling', async (t) => {
	const cleo = await follow(t, gateway, 'cleo', { config: { limits: { tokens: 30 } } })
	await add(cleo, sdkServer({ sampling: true }))
	const run_id = await cleo.start(`/tool mcp__own__sample ${JSON.stringify({ ...hello, times: 3 })}`)
	await cleo.ended(run_id)
	const sampled = ((await cleo.call('runs')).body as Answer[]).filter(({ trigger }) => trigger === 'sampling')
	t.ok(sampled.some(({ status, error }) => status === 'failed' && error.code === 'limit_tokens'))
})

void t.test('cancelling a run stops its sampling', async (t) => {
	const dora = await follow(t, gateway, 'dora', { config: { provider: 'held' } })
	await add(dora, sdkServer({ sampling: true }))
	const run_id = await dora.start('go')
	const params = { messages: [message('user', 'while it runs')], maxTokens: 10 }
	;(await held.called('go')).callTool('mcp__own__sample', JSON.stringify({ params }))
	const asked = await held.called('while it runs')
	await gateway.request('POST', `/v1/runs/${run_id}/cancel`)
	await asked.hungUp
	const ended = await eventually(
		async () => (await dora.call('runs')).body as Answer[],
		(runs) => runs.length === 2 && runs.every(({ status }) => status === 'stopped'),
	)
	t.strictSame(new Set(ended.map(({ trigger }) => trigger)), new Set(['api', 'sampling']))
})

void t.test('a reload during a run does not reset its count of sampling requests', async (t) => {
	const iris = await follow(t, gateway, 'iris', { config: { provider: 'held' } })
	await add(iris, sdkServer({ sampling: true }))
	const run_id = await iris.start('several')
	const once = { params: { messages: [message('user', 'Again')], maxTokens: 10 } }
	;(await held.called('several')).callTool('mcp__own__sample', JSON.stringify({ ...once, times: 3 }))
	for (const n of [1, 2, 3]) (await held.called('Again', n)).answer('Yes.')
	const next = await held.called('several', 2)
	const file = join(gateway.home, 'config/gateway.yaml')
	writeFileSync(file, readFileSync(file, 'utf8').replace('max_sampling_tokens: 50', 'max_sampling_tokens: 51'))
	await gateway.running.gateway.reload()
	next.callTool('mcp__own__sample', JSON.stringify(once), 'call_2')
	const last = await held.called('several', 3)
	const { content } = (last.body.messages as Answer[]).at(-1)
	t.match(content, /3 requests for sampling.*mcp\.max_samplings_per_run/)
	last.answer('Done.')
	await iris.ended(run_id)
})

void t.test('requests that the operator has not allowed are refused', async (t) => {
	const emil = await follow(t, gateway, 'emil')
	await add(emil, sdkServer())
	const { sampling, roots } = outcomes(await callTool(emil, 'mcp__own__client'))
	t.strictSame([sampling, roots], [undefined, undefined])
	const notAllowed = (what: string) => ({
		code: -32601,
		message: RegExp(`operator.* has not allowed it .*\\(${what}\\)`),
	})
	t.match(outcomes(await callTool(emil, 'mcp__own__sample', hello)), [notAllowed('sampling')])
	t.match(outcomes(await callTool(emil, 'mcp__own__roots')), notAllowed('roots'))

	const { token } = await addToken(gateway, ['agents:write'])
	const web = { name: 'web', transport: 'http', url: 'https://example.com/mcp' }
	for (const [field, value] of [
		['sampling', true],
		['roots', ['file:///srv']],
	] as const) {
		const reply = await gateway.request('POST', '/v1/agents/emil/mcp', { token, body: { ...web, [field]: value } })
		assertError(t, reply, { status: 403, code: 'forbidden', message: RegExp(`${field} requires the scope`) })
	}
	for (const roots of [['/srv'], ['https://example.com/'], ['file://host/srv'], ['file:///a', 'file:///a']]) {
		const reply = await emil.call('mcp', { ...web, roots })
		assertError(t, reply, { status: 400, code: 'invalid_request', message: /roots/ })
	}
})

void t.test('a server gets exactly the allowed roots', async (t) => {
	const finn = await follow(t, gateway, 'finn')
	const roots = ['file:///srv/books', 'file:///srv/notes']
	const { id } = await add(finn, sdkServer({ roots }))
	t.match((await finn.call(`mcp/${id}`)).body, { sampling: false, roots })
	t.strictSame(outcomes(await callTool(finn, 'mcp__own__roots')), { roots: roots.map((uri) => ({ uri })) })
})

void t.test('the reference server samples and reads roots', async (t) => {
	const gil = await follow(t, gateway, 'gil')
	const everything = { ...stdio('all', servers.everything, 'stdio'), sampling: true, roots: ['file:///srv/books'] }
	const { id } = await add(gil, everything)
	// It adds these tools, and announces them, once it knows the capabilities of its client.
	await until(gateway, 'gil', id, ({ tools }) =>
		['trigger-sampling-request', 'get-roots-list'].every((name) => tools.some((one: Answer) => one.name === name)),
	)
	const sampled = await callTool(gil, 'mcp__all__trigger-sampling-request', { prompt: 'Well?', maxTokens: 20 })
	t.match(sampled, { event_type: 'mcp.result', result: /heard .*Well\?/ })
	t.match((await callTool(gil, 'mcp__all__get-roots-list')).result, /file:\/\/\/srv\/books/)
})
