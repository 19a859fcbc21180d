/** Tools of real MCP servers, called in runs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { add, callTool, servers, startEverything, stdio, until } from '../../support/mcp.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: `
providers:
  offline: {kind: offline}
  main: {kind: openai, base_url: "${model.url}", api_key: sk-test, model: some-model}
default_provider: offline
`,
})
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

void t.test('the reference server over each transport', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const [web, old] = await Promise.all([startEverything(t, 'streamableHttp'), startEverything(t, 'sse')])
	const cases = [
		{ fields: stdio('by-stdio', servers.everything, 'stdio'), detail: /stdio/ },
		{ fields: { name: 'by-http', transport: 'http', url: web.url }, detail: /Streamable HTTP/ },
		{ fields: { name: 'by-sse', transport: 'sse', url: old.url }, detail: /SSE/ },
		{ fields: { name: 'by-sse-to-new', transport: 'sse', url: web.url }, detail: /Streamable HTTP/ },
	]
	for (const { fields, detail } of cases) {
		const name = String(fields.name)
		const server = await add(ada, fields)
		t.match(server, { name, transport: fields.transport, status: 'connected' })
		const { body } = await ada.call(`mcp/${server.id}`)
		t.match(body.status_detail, detail, name)
		t.match(body, { server: { name: 'mcp-servers/everything', version: String }, protocol_version: '2025-11-25' })

		const echo = await callTool(ada, `mcp__${name}__echo`, { message: 'ciao' })
		t.match(echo, { event_type: 'mcp.result', server: name, tool: 'echo', result: 'Echo: ciao' })
		const sum = await callTool(ada, `mcp__${name}__get-sum`, { a: 40, b: 2 })
		t.match(sum.result, /42/)
		const wrong = await callTool(ada, `mcp__${name}__get-sum`, { a: 'forty' })
		t.match(wrong, { event_type: 'mcp.failed', code: 'mcp_failed', message: /number/ })
	}
	const refused = await add(ada, { name: 'http-only', transport: 'http', url: old.url })
	t.equal(refused.status, 'error', 'http does not fall back to the older transport')
})

void t.test('a run tells of a call in order, and a model gets the tool as the server describes it', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: 'main' } } })
	const call = { name: 'mcp__by-stdio__get-structured-content', arguments: { location: 'Chicago' } }
	model.on('what is the weather', { tools: [call] }, 'It is cold.')
	const run_id = await ada.complete('what is the weather')
	t.strictSame(ada.typesOf(run_id), [
		'run.started',
		'message.user',
		'model.request',
		'model.response',
		'mcp.called',
		'mcp.result',
		'model.request',
		'model.response',
		'message.assistant',
		'run.completed',
	])
	const [first, second] = model.requests('what is the weather')
	const offered = first?.tools?.find((tool) => tool.function.name === call.name)
	t.match(offered?.function.description, /structured content/i)
	t.match(offered?.function.parameters, {
		type: 'object',
		properties: { location: { enum: ['New York', 'Chicago', 'Los Angeles'] } },
	})
	const result = second?.messages.findLast((message) => message.role === 'tool')?.content
	t.match(JSON.parse(String(result)), { temperature: Number, conditions: String }, 'said once, not twice')
})

void t.test('what a result holds beside text is told of', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: null } } })
	const image = await callTool(ada, 'mcp__by-stdio__get-tiny-image')
	t.match(image.result, /\[image, image\/png, \d+ bytes: not shown\]/)
	t.notMatch(image.result, /iVBORw0KGgo/)
	const links = await callTool(ada, 'mcp__by-stdio__get-resource-links', { count: 2 })
	t.match(links.result, /\[link to the resource .*demo:\/\/resource/)
	const resource = await callTool(ada, 'mcp__by-stdio__get-resource-reference', { resourceType: 'Text', resourceId: 1 })
	t.match(resource.result, /\[resource demo:\/\/resource\/dynamic\/text\/1, text\/plain\]\nResource 1/)
})

void t.test('a server that a tool works on files with keeps to its folder', async (t) => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-'))
	t.teardown(() => rmSync(folder, { recursive: true }))
	writeFileSync(join(folder, 'note.txt'), 'remember the milk')
	const dora = await follow(t, gateway, 'dora')
	await add(dora, stdio('files', servers.files, folder))
	const read = await callTool(dora, 'mcp__files__read_text_file', { path: join(folder, 'note.txt') })
	t.match(read.result, /remember the milk/)
	const outside = await callTool(dora, 'mcp__files__read_text_file', { path: '/etc/passwd' })
	t.match(outside, { event_type: 'mcp.failed', message: /denied/i })
})

void t.test('a server keeps its state over calls and runs', async (t) => {
	const folder = mkdtempSync(join(tmpdir(), 'svc-mcp-'))
	t.teardown(() => rmSync(folder, { recursive: true }))
	const emma = await follow(t, gateway, 'emma')
	await add(emma, {
		...stdio('graph', servers.memory),
		env: { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') },
	})
	const entity = { name: 'Biscotto', entityType: 'cat', observations: ['sleeps in the office'] }
	await callTool(emma, 'mcp__graph__create_entities', { entities: [entity] })
	const found = await callTool(emma, 'mcp__graph__search_nodes', { query: 'Biscotto' })
	t.match(found.result, /sleeps in the office/)
})

void t.test('a tool that comes later is there after the server says so', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	const { id } = await add(fay, stdio('own', servers.fixture))
	await callTool(fay, 'mcp__own__grow', { name: 'newcomer' })
	await until(gateway, 'fay', id, ({ tools }) => tools.some((tool: { name: string }) => tool.name === 'newcomer'))
	t.equal((await callTool(fay, 'mcp__own__newcomer')).result, 'newcomer was called')
})

void t.test('a call is cut off when it shows no progress, and the server is told', async (t) => {
	const impatient = await startGateway({ config: 'mcp: {call_timeout_s: 1}\n' })
	t.teardown(() => impatient.stop())
	const gil = await follow(t, impatient, 'gil')
	const { id } = await add(gil, stdio('own', servers.fixture))
	const hung = await callTool(gil, 'mcp__own__hang')
	t.match(hung, { event_type: 'mcp.failed', code: 'mcp_timeout', message: /1 s without a sign of progress/ })
	await until(impatient, 'gil', id, ({ stderr }) => /cancelled: 1 s without a sign of progress/.test(stderr))
})

void t.test('stopping a run cancels its call at the server', async (t) => {
	const hal = await follow(t, gateway, 'hal')
	await add(hal, stdio('own', servers.fixture))
	const run_id = await hal.start('/tool mcp__own__hang {}')
	await hal.heard(run_id, 'mcp.called')
	t.equal((await gateway.request('POST', '/v1/agents/hal/stop', { body: {} })).status, 200)
	t.equal((await hal.ended(run_id)).event_type, 'run.stopped')
	const heard = JSON.parse((await callTool(hal, 'mcp__own__cancelled')).result)
	t.equal(heard.length, 1)
})

void t.test('odd servers: noise on the output, long results, a failed tool', async (t) => {
	const ida = await follow(t, gateway, 'ida')
	const { id } = await add(ida, stdio('own', servers.fixture))
	t.equal((await callTool(ida, 'mcp__own__noise')).result, 'made noise')
	const { body } = await ida.call(`mcp/${id}`)
	t.match(body.stderr, /ready to serve/)
	t.match(body.stderr, /only messages belong\] this is no message/)
	t.match(await callTool(ida, 'mcp__own__fail'), {
		event_type: 'mcp.failed',
		code: 'mcp_failed',
		message: 'it went wrong',
	})

	const run_id = await ida.complete('/tool mcp__own__long {"size": 1000000}')
	t.match((await ida.heard(run_id, 'mcp.result')).payload.result, /^x+… \[cut: \d+ more characters\]$/)
	t.equal((await callTool(ida, 'mcp__own__list', { count: 100 })).result, 'made a list')
	const flood = await callTool(ida, 'mcp__own__list', { count: 50_000 })
	t.match(flood.message, /a list of more than 100 messages/)
	const fatal = await callTool(ida, 'mcp__own__long', { size: 5_000_000 })
	t.match(fatal, { event_type: 'mcp.failed', code: 'mcp_failed', message: /interrupted.*more than 4194304 bytes/ })
	const mended = await until(gateway, 'ida', id, ({ status }) => status === 'connected')
	t.match(mended.last_error.message, /more than 4194304 bytes/)
})
