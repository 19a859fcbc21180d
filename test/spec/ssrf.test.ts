/**
 * Addresses in requests, over HTTP: for a caller without the scope `*`, the gateway connects to public addresses only, whether the
 * caller installs a skill or adds an MCP server. A redirect to another address is never followed.
 *
 * SVC_TEST_SSRF=all tries every address of the corpus, and redirects with every status. The default is every sixteenth address, each
 * in another spelling, and one status per redirect; guarded-fetch.test.ts tries all of them.
 */
import { createServer } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { addToken } from '../support/add.ts'
import { startGateway } from '../support/gateway.ts'
import type { Answer, Reply, TestGateway } from '../support/gateway.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { isProperResponse, assertError } from '../support/error-response.ts'
import { hostileTargets, hostileUrls, ownNames, startCanary } from '../support/ssrf.ts'
import { eventually } from '../support/wait.ts'

const SKILL = '---\nname: greeter\ndescription: Greets.\nparameters: []\n---\nSay hello.\n'
const CONCURRENCY = 8
const SHARE = process.env.SVC_TEST_SSRF === 'all' ? 1 : 16
const STATUSES = [301, 302, 303, 307, 308]

const someUrls = (port: number): string[] => hostileUrls(port).filter((_, n) => n % SHARE === 0)

interface Caller {
	install(url: string): Promise<Reply<Answer>>
	addServer(url: string, transport?: 'http' | 'sse'): Promise<Reply<Answer>>
}

async function callersOf(gateway: TestGateway): Promise<{ writer: Caller; admin: Caller }> {
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	let servers = 0
	const callerWith = async (scope: string): Promise<Caller> => {
		const token = (await addToken(gateway, [scope])).token
		const post = (path: string, body: object): Promise<Reply<Answer>> =>
			gateway.request('POST', `/v1/agents/ada/${path}`, { token, body })
		return {
			install: (url) => post('skills/install', { url }),
			addServer: (url, transport = 'http') => post('mcp', { name: `s${servers++}`, transport, url }),
		}
	}
	return { writer: await callerWith('agents:write'), admin: await callerWith('*') }
}

async function concurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
	const left = items.values()
	const worker = async (): Promise<void> => {
		for (const item of left) await work(item)
	}
	await Promise.all(Array.from({ length: CONCURRENCY }, worker))
}

/** The number of security violations in the audit log. */
async function violations(gateway: TestGateway): Promise<number> {
	let count = 0
	for (let cursor: string | null = ''; cursor !== null;) {
		const query: string = `event_type=security.violation&limit=500${cursor && `&cursor=${cursor}`}`
		const { body }: Reply<Answer> = await gateway.request('GET', `/v1/audit?${query}`)
		count += body.events.length
		cursor = body.next_cursor
	}
	return count
}

/** A server on 127.0.0.1 that redirects `/?to=URL` to that URL, and has a skill at `/skill.md`. */
async function startFront(t: Test): Promise<{ host: string; redirect(target: string, status?: number): string }> {
	const server = createServer((request, response) => {
		const { pathname, searchParams } = new URL(request.url ?? '', 'http://front')
		const to = searchParams.get('to')
		if (to !== null) response.writeHead(Number(searchParams.get('status')), { location: to }).end()
		else if (pathname === '/skill.md') response.writeHead(200, { 'content-type': 'text/markdown' }).end(SKILL)
		else response.writeHead(404).end()
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const host = `127.0.0.1:${port}`
	return {
		host,
		redirect: (target, status = 302) =>
			`http://${host}/?${new URLSearchParams({ to: target, status: String(status) })}`,
	}
}

void t.test('no skill is installed from an address that is not public, and each attempt is an event', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const canary = await startCanary(t)
	const { writer } = await callersOf(gateway)
	let attempts = 0
	await concurrently(someUrls(canary.port), async (url) => {
		const reply = await writer.install(url)
		if (reply.body.code === 'address_refused') attempts++
		if (reply.status !== 400 || !isProperResponse(reply))
			t.fail(`${JSON.stringify(url)}: ${JSON.stringify(reply.body)}`)
	})
	t.ok(attempts > 760 / SHARE, `${attempts} were refused as addresses`)
	// The response precedes the event.
	t.equal(
		await eventually(
			() => violations(gateway),
			(count) => count >= attempts,
		),
		attempts,
	)
	await concurrently(ownNames(canary.port), async (url) => void t.equal((await writer.install(url)).status, 400, url))
	t.equal(canary.touched(), 0, 'no connection was made')
	t.strictSame((await gateway.request('GET', '/v1/agents/ada/skills')).body, [])
	assertError(t, await writer.install(`http://127.0.0.1:${canary.port}/`), {
		status: 400,
		code: 'address_refused',
		path: 'url',
		message: /127\.0\.0\.1 is not a public address.*skills\.allow_private_urls/,
	})
})

void t.test('no MCP server is added at an address that is not public', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const canary = await startCanary(t)
	const { writer } = await callersOf(gateway)
	let count = 0
	await concurrently(someUrls(canary.port), async (url) => {
		const reply = await writer.addServer(url, count++ % 2 === 0 ? 'http' : 'sse')
		const isRefused = reply.status === 400 || reply.status === 403
		if (!isRefused || !isProperResponse(reply)) t.fail(`${JSON.stringify(url)}: ${JSON.stringify(reply.body)}`)
	})
	t.ok(await eventually(async () => (await violations(gateway)) > 760 / SHARE))
	t.strictSame((await gateway.request('GET', '/v1/agents/ada/mcp')).body, [])
	for (const url of ownNames(canary.port)) await writer.addServer(url) // a name that has no address yet is accepted
	t.equal(canary.touched(), 0, 'no connection was made')
	assertError(t, await writer.addServer(`http://127.0.0.1:${canary.port}/`), {
		status: 403,
		code: 'forbidden',
		message: /127\.0\.0\.1 is not a public address.*mcp\.allowed_hosts/,
	})
})

void t.test('a redirect to an address that is not public is never followed, even for the scope *', async (t) => {
	const front = await startFront(t)
	const gateway = await startGateway({
		config: `skills:\n  allow_private_urls: true\nmcp:\n  allowed_hosts: ['${front.host}']\n`,
	})
	t.teardown(() => gateway.stop())
	const canary = await startCanary(t)
	const { writer, admin } = await callersOf(gateway)
	const targets = hostileTargets(canary.port)
	for (const caller of [writer, admin]) {
		await concurrently(
			STATUSES.flatMap((status, of) =>
				targets.flatMap((target, n) => (SHARE === 1 || n % STATUSES.length === of ? [[target, status] as const] : [])),
			),
			async ([target, status]) => {
				const reply = await caller.install(front.redirect(target, status))
				if (reply.status !== 400 || reply.body.code !== 'address_refused')
					t.fail(`${status} to ${target}: ${JSON.stringify(reply.body)}`)
			},
		)
		for (const [n, target] of [
			`http://127.0.0.1:${canary.port}/`,
			`//localhost:${canary.port}/`,
			`http://[::1]:${canary.port}/`,
		].entries()) {
			const reply = await caller.addServer(front.redirect(target, 307), n % 2 === 0 ? 'http' : 'sse')
			t.equal(reply.status, 201)
			t.not(reply.body.status, 'connected')
			await gateway.request('DELETE', `/v1/agents/ada/mcp/${reply.body.id}`)
		}
	}
	t.equal(canary.touched(), 0, 'no connection was made')
})

void t.test('a caller with the scope * reaches a private address', async (t) => {
	const front = await startFront(t)
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const canary = await startCanary(t)
	const { writer, admin } = await callersOf(gateway)
	const installed = await admin.install(`http://${front.host}/skill.md`)
	t.equal(installed.status, 201, JSON.stringify(installed.body))
	t.equal((await writer.install(`http://${front.host}/skill.md`)).status, 400)
	t.equal((await admin.install(`http://127.0.0.1:${canary.port}/`)).status, 400, 'the response is not a skill')
	t.equal(canary.touched(), 1)
	t.equal((await admin.addServer(`http://127.0.0.1:${canary.port}/`)).status, 201)
	t.ok(canary.touched() > 1)
	for (const url of ['http://169.254.169.254/latest/', 'http://0.0.0.0/', 'http://[fe80::1]/', 'file:///etc/passwd']) {
		t.equal((await admin.install(url)).status, 400, url)
		t.equal((await admin.addServer(url)).status, 400, url)
	}
})
