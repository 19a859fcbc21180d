/** Tools of real MCP servers, called in runs. */
import { join } from 'node:path'
import t from 'tap'
import { watchDeadlines } from '../../support/deadlines.ts'
import { startGateway } from '../../support/gateway.ts'
import { add, callTool, servers, stdio, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

const CALL_TIMEOUT_S = 3001
const gateway = await startGateway({ config: `mcp: {call_timeout_s: ${CALL_TIMEOUT_S}, max_call_s: 80000}\n` })
t.teardown(() => gateway.stop())

void t.test('a file server reads only in its folder', async (t) => {
	const folder = t.testdir({ 'note.txt': 'remember the milk' })
	const dora = await follow(t, gateway, 'dora')
	await add(dora, stdio('files', servers.files, folder))
	const read = await callTool(dora, 'mcp__files__read_text_file', { path: join(folder, 'note.txt') })
	t.match(read.result, /remember the milk/)
	const outside = await callTool(dora, 'mcp__files__read_text_file', { path: '/etc/passwd' })
	t.match(outside, { event_type: 'mcp.failed', message: /denied/i })
})

void t.test('a server keeps its state between calls and runs', async (t) => {
	const folder = t.testdir({})
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

void t.test('a new tool can be called after the server announces it', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	const { id } = await add(fay, stdio('own', servers.fixture))
	await callTool(fay, 'mcp__own__grow', { name: 'newcomer' })
	await until(gateway, 'fay', id, ({ tools }) => tools.some((tool: { name: string }) => tool.name === 'newcomer'))
	t.equal((await callTool(fay, 'mcp__own__newcomer')).result, 'newcomer was called')
})

void t.test('a call without progress is cut off, and the server is notified', async (t) => {
	const gil = await follow(t, gateway, 'gil')
	const { id } = await add(gil, stdio('own', servers.fixture))
	const deadlines = watchDeadlines(t, CALL_TIMEOUT_S * 1000)
	const hung = callTool(gil, 'mcp__own__hang')
	await gil.stream.waitFor('mcp.called')
	await eventually(() => deadlines.pending() > 0)
	deadlines.expire()
	const message = /3001 s without progress/
	t.match(await hung, { event_type: 'mcp.failed', code: 'mcp_timeout', message })
	await until(gateway, 'gil', id, ({ stderr }) => /cancelled: 3001 s without progress/.test(stderr))
})

void t.test('stopping a run cancels its call at the server', async (t) => {
	const hal = await follow(t, gateway, 'hal')
	await add(hal, stdio('own', servers.fixture))
	const run_id = await hal.start('/tool mcp__own__hang {}')
	await hal.waitFor(run_id, 'mcp.called')
	t.equal((await gateway.request('POST', '/v1/agents/hal/stop', { body: {} })).status, 200)
	t.equal((await hal.ended(run_id)).event_type, 'run.stopped')
	const cancelled = JSON.parse((await callTool(hal, 'mcp__own__cancelled')).result)
	t.equal(cancelled.length, 1)
})

void t.test('a server stays usable after noise on its output, a failed tool and oversized results', async (t) => {
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
	t.match((await ida.waitFor(run_id, 'mcp.result')).payload.result, /^x+… \[cut: \d+ more characters\]$/)
	t.equal((await callTool(ida, 'mcp__own__list', { count: 100 })).result, 'made a list')
	const flood = await callTool(ida, 'mcp__own__list', { count: 50_000 })
	t.match(flood.message, /a list of more than 100 messages/)
	const fatal = await callTool(ida, 'mcp__own__long', { size: 5_000_000 })
	t.match(fatal, { event_type: 'mcp.failed', code: 'mcp_failed', message: /interrupted.*more than 4194304 bytes/ })
	const reconnected = await until(gateway, 'ida', id, ({ status }) => status === 'connected')
	t.match(reconnected.last_error.message, /more than 4194304 bytes/)
})
