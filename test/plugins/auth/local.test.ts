import { networkInterfaces } from 'node:os'
import t from 'tap'
import type { Test } from 'tap'
import { isLoopback } from '../../../plugins/auth/address.ts'
import { whyNotLocal } from '../../../plugins/auth/local.ts'
import { networkOf } from '../../../plugins/shared/network-counter.ts'
import { setPeer } from '../../../plugins/shared/peer.ts'
import type { IncomingRequest } from '../../../plugins/auth/local.ts'
import { startGateway } from '../../support/gateway.ts'
import type { Answer, TestGateway } from '../../support/gateway.ts'
import { openStream } from '../../support/sse.ts'
import { eventually } from '../../support/wait.ts'
import { sendRaw } from './raw.ts'
import type { RawReply } from './raw.ts'

interface Row {
	method?: string
	/** A GET that changes something. */
	changes?: boolean
	from?: string
	at?: string
	url?: string
	host?: string
	headers?: [name: string, value: string][]
	httpVersion?: string
	/** Why it is not local. Absent: it is. */
	because?: RegExp
}

const proxy = /proxy/
const foreignHost = /Host is neither/
const foreignOrigin = /Origin is not that of/
const foreignSite = /Sec-Fetch-Site/
const foreignPage = /Referer is a page of another origin/
const foreignTarget = /target names a different host/
const elsewhere = /another machine/
const ahead = /ahead of time/
const typed = /Sec-Fetch-Site is none/
const unproven = /no header .* proves/

/** A third-party plugin that does nothing for the rule. */
const shop = `
const scoped = (scope) => ({ access: { scope: [scope, '*'] } })
const get = (name, options, handler = () => 'in') => ({ method: 'GET', path: '/v1/shop/' + name, options, handler })
export default {
	name: 'shop',
	needs: ['auth'],
	http(server) {
		server.route([
			get('silent', {}),
			get('writes', { auth: scoped('runs:write') }),
			get('says-it-reads', { auth: scoped('runs:write'), plugins: { auth: { changes: false } } }),
			get('reads', { auth: scoped('agents:read') }),
			get('moved', { auth: false }, (request, h) => h.redirect('/docs')),
			get('broken', { auth: false }, () => { throw new Error('broken') }),
		])
	},
	start(ctx) {
		const answer = (socket, status) => socket.end('HTTP/1.1 ' + status + ' x\\r\\nconnection: close\\r\\n\\r\\n')
		ctx.upgrade('main', '/v1/shop/ws', (request, socket) => {
			ctx.use('auth').authenticate(request, { scopes: ['runs:write'] })
				.then(() => answer(socket, 204), (error) => answer(socket, error.code === 'unauthorized' ? 401 : 500))
		})
	},
}
`

const rows: Record<string, Row> = {
	'plain IPv4': {},
	'another address of 127.0.0.0/8': { from: '127.8.9.10', at: '127.0.0.2' },
	IPv6: { from: '::1', at: '::1', host: '[::1]:3000' },
	'IPv4 mapped into IPv6': { from: '::ffff:127.0.0.1', at: '::ffff:127.0.0.1' },
	'IPv4 mapped into IPv6, in hexadecimal': { from: '::ffff:7f00:1', at: '::ffff:7f00:1' },
	'from the network': { from: '192.168.1.9', because: elsewhere },
	'from the network, mapped': { from: '::ffff:192.168.1.9', because: elsewhere },
	'to an address of the network': { at: '192.168.1.2', because: elsewhere },
	'from an address that only looks like loopback': { from: '::127.0.0.1', because: elsewhere },
	'without addresses': { from: '', at: '', because: elsewhere },

	'Host localhost': { host: 'localhost:3000' },
	'Host in capitals': { host: 'LocalHost:3000' },
	'Host without a port': { host: '127.0.0.1' },
	'Host at another port, as through a tunnel': { host: 'localhost:8080' },
	'Host that is listed': { host: 'gateway.lan:3000' },
	'Host of a foreign site (DNS rebinding)': { host: 'evil.example:3000', because: foreignHost },
	'Host that begins like an allowed one': { host: 'localhost.evil.example', because: foreignHost },
	'Host that ends like an allowed one': { host: 'evil-localhost', because: foreignHost },
	'Host with a user name': { host: 'localhost@evil.example', because: foreignHost },
	'Host with two values': { host: 'localhost, evil.example', because: foreignHost },
	'Host of the network': { host: '192.168.1.2:3000', because: foreignHost },
	'Host 0.0.0.0': { host: '0.0.0.0:3000', because: foreignHost },
	'Host as a number that some clients accept as an address': { host: '2130706433', because: foreignHost },
	'empty Host': { host: '', because: foreignHost },

	Forwarded: { headers: [['Forwarded', 'for=127.0.0.1']], because: proxy },
	'X-Forwarded-For': { headers: [['X-Forwarded-For', '127.0.0.1']], because: proxy },
	'X-Forwarded-For, empty': { headers: [['x-forwarded-for', '']], because: proxy },
	'X-Forwarded-Host': { headers: [['X-FORWARDED-HOST', 'localhost']], because: proxy },
	'X-Forwarded-Proto': { headers: [['X-Forwarded-Proto', 'https']], because: proxy },
	'X-Real-IP': { headers: [['X-Real-IP', '127.0.0.1']], because: proxy },
	Via: { headers: [['Via', '1.1 proxy']], because: proxy },
	'CF-Connecting-IP': { headers: [['CF-Connecting-IP', '127.0.0.1']], because: proxy },
	'True-Client-IP': { headers: [['True-Client-IP', '127.0.0.1']], because: proxy },
	'an unrelated header': { headers: [['X-Forward', 'x']] },

	'Origin of the gateway itself': { headers: [['Origin', 'http://127.0.0.1:3000']] },
	'Origin in capitals': { host: 'localhost:3000', headers: [['Origin', 'HTTP://LOCALHOST:3000']] },
	'Origin without the port, if it is 80': { host: 'localhost:80', headers: [['Origin', 'http://localhost']] },
	'Origin of a foreign site': { headers: [['Origin', 'https://evil.example']], because: foreignOrigin },
	'Origin null': { headers: [['Origin', 'null']], because: foreignOrigin },
	'Origin at another port': { headers: [['Origin', 'http://127.0.0.1:8080']], because: foreignOrigin },
	'Origin of another name of this machine': { headers: [['Origin', 'http://localhost:3000']], because: foreignOrigin },
	'Origin with https': { headers: [['Origin', 'https://127.0.0.1:3000']], because: foreignOrigin },
	'empty Origin': { headers: [['Origin', '']], because: foreignOrigin },
	'a valid Origin and a second, foreign one': {
		headers: [
			['Origin', 'http://127.0.0.1:3000'],
			['Origin', 'https://evil.example'],
		],
		because: foreignOrigin,
	},

	'Sec-Fetch-Site same-origin': { headers: [['Sec-Fetch-Site', 'same-origin']] },
	'Sec-Fetch-Site none, for a typed address': { headers: [['Sec-Fetch-Site', 'none']] },
	'Sec-Fetch-Site same-site': { headers: [['Sec-Fetch-Site', 'same-site']], because: foreignSite },
	'Sec-Fetch-Site cross-site': { headers: [['sec-fetch-site', 'cross-site']], because: foreignSite },

	'Referer of the gateway itself': { headers: [['Referer', 'http://127.0.0.1:3000/v1/docs?a=b#c']] },
	'Referer of the gateway itself, its origin only': { headers: [['Referer', 'http://127.0.0.1:3000']] },
	'Referer of a foreign site': { headers: [['Referer', 'https://evil.example/page']], because: foreignPage },
	'Referer at another port': { headers: [['referer', 'http://127.0.0.1:8080/']], because: foreignPage },
	'Referer with a user name': { headers: [['Referer', 'http://127.0.0.1:3000@evil.example/']], because: foreignPage },
	'Referer that only begins like the gateway': {
		headers: [['Referer', 'http://127.0.0.1:3000.evil.example/']],
		because: foreignPage,
	},
	'Referer that is not an address': { headers: [['Referer', 'about:blank']], because: foreignPage },
	'a valid Referer and a second, foreign one': {
		headers: [
			['Referer', 'http://127.0.0.1:3000/'],
			['Referer', 'https://evil.example/'],
		],
		because: foreignPage,
	},
	'Referer of a foreign site, if Origin is the same origin': {
		headers: [
			['Origin', 'http://127.0.0.1:3000'],
			['Referer', 'https://evil.example/'],
		],
	},
	'Referer of a foreign site, if the user typed the address': {
		headers: [
			['Sec-Fetch-Site', 'none'],
			['Referer', 'https://evil.example/'],
		],
	},

	'Host as an IPv4 address written as IPv6': { host: '[::ffff:127.0.0.1]:3000', because: foreignHost },
	'the same in hexadecimal': { host: '[::ffff:7f00:1]:3000', because: foreignHost },
	'the same, listed': { host: '[::ffff:7f00:2]:3000', because: foreignHost },
	'Host as a long form of ::1': { host: '[0:0:0:0:0:0:0:1]:3000', because: foreignHost },

	'Sec-Purpose': {
		headers: [
			['Sec-Fetch-Site', 'same-origin'],
			['Sec-Purpose', 'prefetch;prerender'],
		],
		because: ahead,
	},
	'Purpose, empty': { headers: [['purpose', '']], because: ahead },

	'HEAD of a typed address': { method: 'HEAD', headers: [['Sec-Fetch-Site', 'none']] },
	'POST of a typed address': { method: 'POST', headers: [['Sec-Fetch-Site', 'none']], because: typed },
	'DELETE of a typed address': { method: 'DELETE', headers: [['Sec-Fetch-Site', 'none']], because: typed },
	'POST without any of these headers, as programs send it': { method: 'POST', host: 'gateway.lan:3000' },

	'a GET that changes something': { changes: true },
	'the same, at ::1': { changes: true, host: '[::1]:3000' },
	'the same, at a typed address': { changes: true, headers: [['Sec-Fetch-Site', 'none']], because: typed },
	'the same, from the gateway itself': { changes: true, headers: [['Sec-Fetch-Site', 'same-origin']] },
	'the same, with a Referer of another origin': {
		changes: true,
		headers: [['Referer', 'http://localhost:3000/']],
		because: foreignPage,
	},
	'the same, at a listed name': { changes: true, host: 'gateway.lan:3000', because: unproven },
	'the same, at a listed name, with Sec-Fetch-Site': {
		changes: true,
		host: 'gateway.lan:3000',
		headers: [['Sec-Fetch-Site', 'same-origin']],
	},
	'the same, at a listed name, with Origin': {
		changes: true,
		host: 'gateway.lan:3000',
		headers: [['Origin', 'http://gateway.lan:3000']],
	},
	'the same, at a listed name, with Referer': {
		changes: true,
		host: 'gateway.lan:3000',
		headers: [['Referer', 'http://gateway.lan:3000/docs']],
	},
	'a WebSocket of a program, at a listed name': {
		changes: true,
		host: 'gateway.lan:3000',
		headers: [['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==']],
	},

	'HTTP/1.0, as nginx forwards requests by default': {
		httpVersion: '1.0',
		because: /HTTP\/1\.0, as through a proxy/,
	},

	'an absolute URL as target': { url: 'http://127.0.0.1:3000/v1/agents' },
	'an absolute URL of another host as target': { url: 'http://evil.example/v1/agents', because: foreignTarget },
	'an absolute URL with a user name as target': {
		url: 'http://127.0.0.1:3000@evil.example/v1/agents',
		because: foreignTarget,
	},
	'an absolute URL with https as target': { url: 'https://127.0.0.1:3000/v1/agents', because: foreignTarget },
	'a path that begins with two slashes': { url: '//evil.example/v1/agents' },
}

void t.test('is not local: the origin of the gateway itself, if it is listed for CORS', async (t) => {
	const arrival = arrivalOf({ host: 'localhost:3000', headers: [['Origin', 'HTTP://localhost:3000']] })
	const rule = { allowedHosts: [], corsOrigins: ['http://localhost:3000'] }
	t.match(whyNotLocal(arrival, rule)?.because, /Origin is listed in server\.cors_origins/)
	t.equal(whyNotLocal(arrival, { ...rule, corsOrigins: [] }), null)
})

for (const [name, row] of Object.entries(rows)) {
	void t.test(`${row.because ? 'is not local' : 'is local'}: ${name}`, async (t) => {
		const why = whyNotLocal(arrivalOf(row), { allowedHosts: ['gateway.lan', '::ffff:7f00:2'], changes: row.changes })
		if (row.because) t.match(why?.because, row.because)
		else t.equal(why, null)
	})
}

void t.test('is not local: a request of another client, forwarded on a local connection', async (t) => {
	const arrival = arrivalOf({ host: 'localhost:3000' })
	setPeer(arrival, { remoteAddress: '192.0.2.1', localAddress: '192.0.2.2' })
	t.match(whyNotLocal(arrival, { allowedHosts: [] })?.because, elsewhere)
})

void t.test('loopback addresses and networks are recognized in any notation', async (t) => {
	for (const address of ['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::ffff:7f00:1']) {
		t.ok(isLoopback(address), address)
	}
	for (const address of ['128.0.0.1', '126.255.255.255', '::2', '::', '::ffff:10.0.0.1', 'localhost', '', '127.1']) {
		t.notOk(isLoopback(address), address)
	}
	t.equal(networkOf('10.1.2.3'), '10.1.2.3')
	t.equal(networkOf('::ffff:10.1.2.3'), '10.1.2.3')
	t.equal(networkOf('::ffff:a01:203'), '10.1.2.3')
	t.equal(networkOf('2001:db8:0:7::1'), networkOf('2001:db8:0:7:ffff:ffff:ffff:ffff'))
	t.not(networkOf('2001:db8:0:7::1'), networkOf('2001:db8:0:8::1'))
	t.equal(networkOf('fe80::1%eth0'), networkOf('fe80::2'))
})

void t.test('over real sockets', async (t) => {
	const gateway = await startGateway({
		config: 'server: {host: 0.0.0.0, allowed_hosts: [gateway.lan]}\nplugins: {mcp-server: true, shop: true}\n',
		files: { 'plugins/shop/index.js': shop },
	})
	const legacy = gateway.running.gateway.status.url('legacy') ?? ''
	t.teardown(() => gateway.stop())
	const host = `Host: ${new URL(gateway.url).host}`
	const get = 'GET /v1/agents HTTP/1.1'
	const ask = (...head: string[]) => sendRaw(gateway.url, head)

	await t.test('accepts a local request without a token', async (t) => {
		t.equal((await ask(get, host)).status, 200)
		t.equal((await ask(get, 'Host: gateway.lan')).status, 200)
	})
	await t.test('requires a token with any sign of a proxy or a foreign page', async (t) => {
		for (const header of ['X-Forwarded-For: 127.0.0.1', 'Origin: https://evil.example', 'Sec-Fetch-Site: cross-site']) {
			const { status, body } = await ask(get, host, header)
			t.equal(status, 401, header)
			t.match(body.message, /does not count as local, since its/, header)
		}
		t.equal((await ask(get, 'Host: evil.example')).status, 401)
		t.equal((await ask('GET http://evil.example/v1/agents HTTP/1.1', host)).status, 401)
	})
	await t.test('finds the sign of a proxy after any number of headers', async (t) => {
		for (let count = 100; count <= 4_000; count += 100) {
			const others = Array.from({ length: count }, () => 'a:')
			const { status } = await ask(get, host, ...others, 'X-Forwarded-For: 203.0.113.7')
			t.ok([401, 431].includes(status), `${status} with ${count} others`)
		}
	})
	await t.test('refuses more than one Host header on every route', async (t) => {
		for (const path of ['/v1/agents', '/healthz', '/nowhere']) {
			const { status, body } = await ask(`GET ${path} HTTP/1.1`, host, 'Host: evil.example')
			t.match(
				{ status, code: body.code, message: body.message },
				{ status: 400, code: 'invalid_request', message: /one Host/ },
			)
		}
		t.equal((await ask(get, host, host)).status, 400, 'even twice the same')
	})
	await t.test('does not repeat a header in its error', async (t) => {
		const { status, body } = await ask(get, host, 'X-Forwarded-Hunter2: x')
		t.equal(status, 401)
		t.notMatch(JSON.stringify(body), /hunter2/i)
	})
	await t.test('protects every response from pages of other origins', async (t) => {
		const answers: [status: number, head: string[]][] = [
			[200, [get, host]],
			[200, ['GET /healthz HTTP/1.1', host]],
			[200, ['GET /docs HTTP/1.1', host]],
			[401, [get, 'Host: evil.example']],
			[404, ['GET /nowhere HTTP/1.1', host]],
			[404, ['GET /nowhere HTTP/1.1', host, 'Connection: Upgrade', 'Upgrade: websocket']],
			[400, [get, host, host]],
			[400, [get]],
			[400, ['nonsense', host]],
			[200, [get, host, 'Expect: more']],
			[431, [get, host, `X-Long: ${'x'.repeat(20_000)}`]],
			[302, ['GET /v1/shop/moved HTTP/1.1', host]],
			[500, ['GET /v1/shop/broken HTTP/1.1', host]],
			[401, ['GET /mcp HTTP/1.1', host, 'Origin: http://evil.example']],
			[400, ['GET /mcp HTTP/1.1', host]],
		]
		const { headers } = await gateway.request('GET', '/docs/reference.js')
		answers.push([304, ['GET /docs/reference.js HTTP/1.1', host, `If-None-Match: ${headers.get('etag')}`]])
		for (const [wanted, head] of answers) assertProtected(t, wanted, head, await ask(...head))

		await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
		const chat = '/api/agents/ada/chat'
		const legacyHost = `Host: ${new URL(legacy).host}`
		const upgrade = [legacyHost, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13']
		const legacyAnswers: [status: number, head: string[]][] = [
			[200, [`GET ${chat}/stream?message=hello HTTP/1.1`, legacyHost]],
			[401, [`GET ${chat}/stream?message=hello HTTP/1.1`, legacyHost, 'Sec-Fetch-Site: none']],
			[404, ['GET /nowhere HTTP/1.1', legacyHost]],
			[401, [`GET ${chat}/ws HTTP/1.1`, ...upgrade, 'Origin: http://evil.example']],
			[400, [`GET ${chat}/ws HTTP/1.1`, ...upgrade]],
		]
		for (const [wanted, head] of legacyAnswers) assertProtected(t, wanted, head, await sendRaw(legacy, head))
		const stream = await openStream(gateway.url)
		t.match(stream.headers, protection, 'an event stream')
		stream.close()
	})
	await t.test('treats a GET whose scope is not for reading as a change', async (t) => {
		const typed = 'Sec-Fetch-Site: none'
		const wanted: Record<string, number> = {
			'/v1/shop/silent': 401,
			'/v1/shop/writes': 401,
			'/v1/shop/says-it-reads': 200,
			'/v1/shop/reads': 200,
			'/v1/auth/tokens': 200,
			'/v1/vault/grants': 200,
			'/v1/backups': 200,
			'/mcp': 400,
		}
		for (const [path, status] of Object.entries(wanted)) {
			t.equal((await ask(`GET ${path} HTTP/1.1`, host, typed)).status, status, path)
			t.equal((await ask(`GET ${path} HTTP/1.1`, host, 'Purpose: prefetch')).status, 401, path)
			t.not((await ask(`GET ${path} HTTP/1.1`, host)).status, 401, path)
		}
	})
	await t.test('applies to the WebSockets of plugins', async (t) => {
		const upgrade = [`GET /v1/shop/ws HTTP/1.1`, 'Connection: Upgrade', 'Upgrade: websocket']
		t.equal((await ask(...upgrade, host)).status, 204)
		t.equal((await ask(...upgrade, host, `Origin: ${gateway.url}`)).status, 204)
		for (const sign of ['Origin: http://evil.example', 'Sec-Fetch-Site: none', 'Sec-Purpose: prefetch'])
			t.equal((await ask(...upgrade, host, sign)).status, 401, sign)
	})
	await t.test('reports a request that a web page may have sent, without its content', async (t) => {
		const gateway = await startGateway()
		t.teardown(() => gateway.stop())
		const host = `Host: ${new URL(gateway.url).host}`
		const ask = (...head: string[]) => sendRaw(gateway.url, head)
		const signs: [sign: string, reason: RegExp][] = [
			['Origin: https://evil.example', foreignOrigin],
			['Sec-Fetch-Site: cross-site', foreignSite],
			['Sec-Purpose: prefetch', ahead],
		]
		for (const [sign] of signs) t.equal((await ask(get, host, sign)).status, 401, sign)
		t.equal((await ask(get, 'Host: evil.example')).status, 401)
		t.equal((await ask(get, host, 'X-Forwarded-For: 127.0.0.1')).status, 401, 'no page sends this')
		t.equal((await ask(get, host, 'Origin: https://evil.example', 'Authorization: Bearer x')).status, 401)
		const reported = await eventually(
			() => violations(gateway),
			({ length }) => length >= 5,
		)
		t.match(
			reported.map(({ payload }) => payload),
			[
				...[...signs.map(([, reason]) => reason), foreignHost].map((message) => ({
					reason: 'foreign_page',
					message,
					source_ip: '127.0.0.1',
				})),
				{ reason: 'token_invalid' },
			],
		)
		t.notMatch(JSON.stringify(reported), /evil/)
	})
	await t.test('refuses a request without a Host header, also over HTTP/1.0', async (t) => {
		t.equal((await ask(get)).status, 400)
		t.equal((await ask('GET /v1/agents HTTP/1.0')).status, 400)
		t.equal((await ask('GET /v1/agents HTTP/1.0', host)).status, 401)
	})
	await t.test('requires a token at an address of the network', async (t) => {
		const address = networkAddress()
		if (address === undefined) {
			t.pass('this machine has no address but loopback')
			return
		}
		const { status, body } = await sendRaw(gateway.url, [get, host], address)
		t.equal(status, 401)
		t.match(body.message, /another machine/)
	})
})

/** Oldest first. */
async function violations(gateway: TestGateway): Promise<Answer[]> {
	const { body } = await gateway.request('GET', '/v1/audit?event_type=security.violation&limit=500')
	return body.events.toSorted((a: Answer, b: Answer) => (a.event_id < b.event_id ? -1 : 1))
}

const protection = {
	'cross-origin-resource-policy': 'same-origin',
	'x-frame-options': 'DENY',
	'x-content-type-options': 'nosniff',
	'x-xss-protection': '0',
	'referrer-policy': 'no-referrer',
}

function assertProtected(t: Test, wanted: number, head: string[], { status, headers }: RawReply): void {
	t.match({ status, headers }, { status: wanted, headers: protection }, head.join(' ').slice(0, 80))
}

function networkAddress(): string | undefined {
	const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
	return all.find((one) => one.family === 'IPv4' && !one.internal)?.address
}

function arrivalOf({
	method = 'GET',
	from = '127.0.0.1',
	at = '127.0.0.1',
	url = '/v1/agents',
	host = '127.0.0.1:3000',
	headers = [],
	httpVersion = '1.1',
}: Row): IncomingRequest {
	return {
		method,
		httpVersion,
		rawHeaders: ['Host', host, 'Accept', '*/*', ...headers.flat()],
		url,
		socket: { remoteAddress: from, localAddress: at },
	}
}
