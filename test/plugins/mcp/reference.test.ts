/** The reference server of the protocol's authors, over each transport: its tools, its questions, its restart. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { add, callTool, servers, startEverything, stdio, until } from '../../support/mcp.ts'
import { startModelServer } from '../../support/model-server.ts'
import { follow } from '../../support/runs.ts'
import { converse } from './converse.ts'

const model = await startModelServer()
const gateway = await startGateway({
	config: `
providers:
  offline: {kind: offline}
  main: {kind: openai, base_url: "${model.url}", api_key: sk-test, model: some-model}
default_provider: offline
`,
})
const web = await startEverything(t, 'streamableHttp')
t.teardown(async () => {
	await gateway.stop()
	await model.stop()
})

void t.test('the reference server works over each transport', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const old = await startEverything(t, 'sse')
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
	const httpOnly = await add(ada, { name: 'http-only', transport: 'http', url: old.url })
	t.equal(httpOnly.status, 'error', 'http does not fall back to the older transport')
})

void t.test('a run emits the events of a call in order; the model gets the tool as described', async (t) => {
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
	t.match(JSON.parse(String(result)), { temperature: Number, conditions: String }, 'once, not twice')
})

void t.test('content of a result that is not text becomes an attachment or a description', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	await gateway.request('PATCH', '/v1/agents/ada', { body: { config: { provider: null } } })
	const image = await callTool(ada, 'mcp__by-stdio__get-tiny-image')
	t.match(image.attachments, [{ type: 'image', media_type: 'image/png' }])
	t.notMatch(image.result, /not shown/)
	t.notMatch(image.result, /iVBORw0KGgo/)
	const links = await callTool(ada, 'mcp__by-stdio__get-resource-links', { count: 2 })
	t.match(links.result, /\[link to the resource .*demo:\/\/resource/)
	const resource = await callTool(ada, 'mcp__by-stdio__get-resource-reference', { resourceType: 'Text', resourceId: 1 })
	t.match(resource.result, /\[resource demo:\/\/resource\/dynamic\/text\/1, text\/plain\]\nResource 1/)
})

void t.test('the reference server asks questions over HTTP, by forms and by URLs', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const form = await ada.start('/tool mcp__by-http__trigger-elicitation-request {}')
	const filled = await converse(t, ada, form, [JSON.stringify({ name: 'Emma', integer: 7 })])
	t.match(filled.result, /- Name: Emma\n[^]*- Favorite Integer: 7/)
	t.match(filled.result, /"untitledSingleSelectEnum": "Monica"/, 'defaults are filled in')

	const link = { url: 'https://example.com/login?state=1', message: 'Please sign in.' }
	const visit = await ada.start(`/tool mcp__by-http__trigger-url-elicitation ${JSON.stringify(link)}`)
	const visited = await converse(t, ada, visit, ['done'])
	t.match(
		visited.asked[0].question,
		/Please sign in\.[^]*https:\/\/example\.com\/login\?state=1\n\(the host is example\.com\)/,
	)
	t.match(visited.result, /accept/)

	const required = await ada.start(
		`/tool mcp__by-http__trigger-url-elicitation ${JSON.stringify({ ...link, errorPath: true })}`,
	)
	const retried = await converse(t, ada, required, ['done', 'done'])
	t.match(retried.result, /accept/, 'a call that requires a visit first is repeated after it')
})

void t.test('an HTTP server is connected again after its restart', async (t) => {
	const cleo = await follow(t, gateway, 'cleo')
	const { id } = await add(cleo, { name: 'web', transport: 'http', url: web.url })
	await web.stop()
	await cleo.stream.waitFor('mcp.disconnected')
	await startEverything(t, 'streamableHttp', Number(new URL(web.url).port))
	await until(gateway, 'cleo', id, ({ status }) => status === 'connected')
	t.equal((await callTool(cleo, 'mcp__web__echo', { message: 'hi' })).result, 'Echo: hi')
})
