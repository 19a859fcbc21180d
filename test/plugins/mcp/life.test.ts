/** Processes of servers: they are restarted after a crash, and nothing of a removed server is left behind. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { add, callTool, gone, isRunning, servers, stdio, until } from '../../support/mcp.ts'
import { follow } from '../../support/runs.ts'
import { eventually } from '../../support/wait.ts'

/** 100 in the long version. */
const SERVERS = Number(process.env.MCP_SERVERS ?? 6)

const gateway = await startGateway({ config: 'mcp: {max_per_agent: 100}\n' })
t.teardown(() => gateway.stop())

const filesOfServers = (home: string): string[] => {
	const folder = join(home, 'run/mcp')
	return existsSync(folder) ? readdirSync(folder) : []
}

void t.test('a server that crashes during a call is restarted, and the run continues', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const { id } = await add(ada, stdio('own', servers.fixture))
	const crash = await callTool(ada, 'mcp__own__crash')
	t.match(crash, {
		event_type: 'mcp.failed',
		code: 'mcp_failed',
		message: /interrupted \(.*exit code 7.*outcome is unknown/,
	})
	const { payload } = await ada.stream.waitFor('mcp.disconnected')
	t.match(payload, { server: 'own', status: 'reconnecting', reason: /exit code 7/ })
	// Its tools stay offered: this call waits for the connection.
	t.equal((await callTool(ada, 'mcp__own__echo', { text: 'again' })).result, 'again')
	t.match(await until(gateway, 'ada', id, ({ status }) => status === 'connected'), { failures: 1 })
	t.ok((await ada.stream.waitFor('mcp.connected', 2)).event_id)
})

void t.test('a server that keeps failing stays in error until a run needs it or it is restarted', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const { id } = await add(bea, stdio('broken', servers.fixture, '--exit'))
	const { payload } = await bea.stream.waitFor('mcp.disconnected')
	t.match(payload, { status: 'error', reason: /exit code 3/ })
	const failed = await until(gateway, 'bea', id, ({ status }) => status === 'error')
	t.match(failed, { failures: 5, pid: null, status_detail: /not retried until it is restarted or a run needs it/ })
	t.equal(bea.stream.events.filter((event) => event.event_type === 'mcp.disconnected').length, 1)
	// A run needs it half a minute later, and the clock was set back meanwhile.
	const { now } = Date
	const monotonic = performance.now.bind(performance)
	Date.now = () => now() - 3_600_000
	performance.now = () => monotonic() + 31_000
	t.teardown(() => Object.assign(Date, { now }) && Object.assign(performance, { now: monotonic }))
	await bea.start('Try it again.')
	await until(gateway, 'bea', id, ({ status }) => status === 'reconnecting')
	const restarted = await gateway.request('POST', `/v1/agents/bea/mcp/${id}/restart`)
	t.equal(restarted.body.status, 'reconnecting')
	await gateway.request('PATCH', `/v1/agents/bea/mcp/${id}`, { body: { enabled: false } })
})

void t.test('a byte order mark before the first message is skipped; an invalid answer is explained', async (t) => {
	const carl = await follow(t, gateway, 'carl')
	const programOf = (mark: string, info: string): string => `
		process.stdout.write('${mark}')
		require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
			const { id, method, params } = JSON.parse(line)
			const about = { protocolVersion: params?.protocolVersion, capabilities: {}, ${info} }
			if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: method === 'initialize' ? about : {} }))
		})`
	const marked = stdio('marked', '-e', programOf('\\ufeff', "serverInfo: { name: 'marked', version: '1' }"))
	t.equal((await add(carl, marked)).status, 'connected')
	const { id } = await add(carl, stdio('unnamed', '-e', programOf('', '')))
	const { last_error } = await until(gateway, 'carl', id, ({ failures }) => failures > 0)
	t.match(last_error.message, /^its answer to "initialize" is not valid: serverInfo: [^{]*$/)
	await gateway.request('PATCH', `/v1/agents/carl/mcp/${id}`, { body: { enabled: false } })
})

void t.test('if npx cannot start a package, the error has the reason, not the path of a log', async (t) => {
	const cora = await follow(t, gateway, 'cora')
	const report = [
		'code E404',
		'404 Not Found - GET https://npm.example.com/absent',
		'404',
		'A complete log of this run can be found in: /x',
	]
	for (const prefix of ['npm error', 'npm ERR!']) {
		const output = report.map((line) => `${prefix} ${line}`).join('\n')
		const program = `console.error(${JSON.stringify(output)}); process.exit(1)`
		const name = prefix.replaceAll(/\W/g, '')
		const { id } = await add(cora, stdio(name, '-e', program))
		const { last_error } = await until(gateway, 'cora', id, ({ failures }) => failures > 1)
		t.match(last_error.message, new RegExp(`its last output: ${prefix} 404 Not Found - GET https:\\S+/absent$`))
		await gateway.request('PATCH', `/v1/agents/cora/mcp/${id}`, { body: { enabled: false } })
	}
})

void t.test('removing a server ends its children, including those that left its process group', async (t) => {
	const dora = await follow(t, gateway, 'dora')
	const { id } = await add(dora, stdio('own', servers.fixture))
	const children = JSON.parse((await callTool(dora, 'mcp__own__children')).result) as number[]
	const { pid } = (await dora.call(`mcp/${id}`)).body
	for (const process_id of [pid, ...children]) t.ok(isRunning(process_id))
	t.equal((await gateway.request('DELETE', `/v1/agents/dora/mcp/${id}`)).status, 204)
	t.strictSame(await gone([pid, ...children]), [])
})

void t.test('a server that ignores SIGTERM is killed', async (t) => {
	const emma = await follow(t, gateway, 'emma')
	const { id } = await add(emma, stdio('own', servers.fixture))
	await callTool(emma, 'mcp__own__deaf')
	const { pid } = (await emma.call(`mcp/${id}`)).body
	t.equal((await gateway.request('DELETE', `/v1/agents/emma/mcp/${id}`)).status, 204)
	t.strictSame(await gone([pid]), [])
})

void t.test('a server that is enabled while it is being disabled connects again', async (t) => {
	const eva = await follow(t, gateway, 'eva')
	const { id } = await add(eva, stdio('own', servers.fixture))
	await callTool(eva, 'mcp__own__deaf')
	const turn = (enabled: boolean) => gateway.request('PATCH', `/v1/agents/eva/mcp/${id}`, { body: { enabled } })
	const off = turn(false)
	await eva.stream.waitFor('mcp.disconnected') // its process takes seconds to end
	t.match(await turn(true), { status: 200, body: { status: 'connected' } })
	t.equal((await off).status, 200)
	t.match((await eva.call(`mcp/${id}`)).body, { status: 'connected' })
})

void t.test('deleting an agent ends its servers and its runs', async (t) => {
	const fay = await follow(t, gateway, 'fay')
	const { id } = await add(fay, stdio('own', servers.fixture))
	const children = JSON.parse((await callTool(fay, 'mcp__own__children')).result) as number[]
	const { pid } = (await fay.call(`mcp/${id}`)).body
	const run_id = await fay.start('/tool mcp__own__hang {}')
	await fay.waitFor(run_id, 'mcp.called')
	t.equal((await gateway.request('DELETE', '/v1/agents/fay')).status, 204)
	t.strictSame(await gone([pid, ...children]), [])
	await gateway.request('POST', '/v1/agents', { body: { name: 'fay' } })
	t.strictSame(
		(await gateway.request('GET', '/v1/agents/fay/mcp')).body,
		[],
		'a new agent of the same name has no servers',
	)
})

void t.test('servers added while their agent is deleted do not outlive it', async (t) => {
	const gil = await follow(t, gateway, 'gil')
	const adding = Array.from({ length: 6 }, (_, n) => gil.call('mcp', stdio(`own-${n}`, servers.fixture)))
	const deleted = await gateway.request('DELETE', '/v1/agents/gil')
	t.equal(deleted.status, 204)
	for (const { status } of await Promise.all(adding)) t.ok([201, 404].includes(status), `answered ${status}`)
	await gateway.request('POST', '/v1/agents', { body: { name: 'gil' } })
	t.strictSame((await gateway.request('GET', '/v1/agents/gil/mcp')).body, [])
})

void t.test(`${SERVERS} servers are added, killed, restarted and removed, and leave nothing behind`, async (t) => {
	const gateway = await startGateway({ config: 'mcp: {max_per_agent: 100}\n' })
	t.teardown(() => gateway.stop())
	const hal = await follow(t, gateway, 'hal')
	const names = Array.from({ length: SERVERS }, (_, n) => `own-${n}`)
	const added = await Promise.all(names.map((name) => add(hal, stdio(name, servers.fixture))))
	const ids = added.map(({ id }) => String(id))
	const connected = (id: string) =>
		until(gateway, 'hal', id, ({ status, pid }) => status === 'connected' && pid !== null)
	const first = (await Promise.all(ids.map(connected))).map(({ pid }) => Number(pid))
	t.equal(new Set(first).size, SERVERS)

	for (const pid of first) process.kill(pid, 'SIGKILL')
	await hal.stream.waitFor('mcp.disconnected', SERVERS)
	const second = (await Promise.all(ids.map(connected))).map(({ pid }) => Number(pid))
	t.strictSame(
		second.filter((pid) => first.includes(pid)),
		[],
	)
	await Promise.all(ids.slice(SERVERS / 2).map((id) => gateway.request('DELETE', `/v1/agents/hal/mcp/${id}`)))
	t.strictSame(await gone(second.slice(SERVERS / 2)), [])
	t.equal(filesOfServers(gateway.home).length, 2 * (SERVERS / 2), 'a folder and a file for each remaining server')
	await gateway.request('DELETE', '/v1/agents/hal')
	t.strictSame(await gone([...first, ...second]), [])
	await eventually(() => filesOfServers(gateway.home).length === 0)
})

void t.test('a changed setting and a stopping gateway leave no process behind', async (t) => {
	const gateway = await startGateway()
	const ida = await follow(t, gateway, 'ida')
	const { id } = await add(ida, stdio('own', servers.fixture))
	const before = (await ida.call(`mcp/${id}`)).body.pid
	writeFileSync(join(gateway.home, 'config/gateway.yaml'), 'mcp: {call_timeout_s: 7}\n')
	await ida.stream.waitFor('mcp.connected', 2)
	t.notOk(isRunning(before))
	const after = (await until(gateway, 'ida', id, ({ status }) => status === 'connected')).pid
	t.equal((await callTool(ida, 'mcp__own__echo', { text: 'hi' })).result, 'hi')
	const children = JSON.parse((await callTool(ida, 'mcp__own__children')).result) as number[]
	await gateway.stop()
	t.strictSame(await gone([after, ...children]), [])
})
