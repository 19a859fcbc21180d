/** The client for addresses from outside, against servers that record every connection. */
import { readFileSync } from 'node:fs'
import http from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import https from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import type { Test } from 'tap'
import { isFault } from '../../../core/errors.ts'
import { checkAddress, fetcherFor, guardedFetch } from '../../../core/fetch/guarded-fetch.ts'
import type { GuardedInit, GuardedOptions, FetchPolicy } from '../../../core/fetch/guarded-fetch.ts'
import { assertCpuTime } from '../../support/cpu-time.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { hostileTargets, hostileUrls, ownNames, startCanary } from '../../support/ssrf.ts'
import { eventually } from '../../support/wait.ts'

const canary = await startCanary(t)

/** Counts as public but is not routed, so that no test contacts a real host. */
const NOWHERE = { address: '3ffe::1', family: 6 }
const HERE = { address: '127.0.0.1', family: 4 }

const anyone: FetchPolicy = { protocols: ['http:', 'https:'] }
/** Reaches *.test, which all lead to this machine. */
const tester: FetchPolicy = { ...anyone, private_hosts: ['front.test', 'other.test', 'secure.test'] }

function options(changes: Partial<GuardedOptions> = {}): GuardedOptions {
	return { policy: tester, max_bytes: 10_000, timeout_ms: 60_000, lookup: async () => [HERE], ...changes }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
	try {
		await work
		return 'none'
	} catch (error) {
		return isFault(error) ? error.code : `not a fault: ${String(error)}`
	}
}

void t.test('the time to check a host grows linearly with its length', async (t) => {
	const check = (dots: number) => () =>
		checkAddress(`https://a${'.'.repeat(dots)}b/`, {
			policy: { ...tester, hosts: ['a.test'] },
			timeout_ms: 60_000,
		}).catch(() => {})
	const pieces = async (): Promise<void> => {
		for (let n = 0; n < 8; n++) await check(10_000)()
	}
	await assertCpuTime(t, 'dots', { work: check(80_000), reference: pieces, times: 4, floor: 10 })
})

interface Front {
	port: number
	/** A URL of this server, by one of the names that resolve to it. */
	at(path: string, name?: string): string
	seen: { method: string | undefined; url: string | undefined; headers: http.IncomingHttpHeaders; body: string }[]
	open(): number
}

/** A server on 127.0.0.1 that records each request before `respond` answers it. */
async function startFront(t: Test, respond: RequestListener, tls?: https.ServerOptions): Promise<Front> {
	const seen: Front['seen'] = []
	const listener = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
		let body = ''
		for await (const part of request) body += String(part)
		seen.push({ method: request.method, url: request.url, headers: request.headers, body })
		respond(request, response)
	}
	const server = tls ? https.createServer(tls) : http.createServer()
	server.on('request', (request, response) => void listener(request, response).catch(() => {}))
	let open = 0
	server.on('connection', (socket) => {
		open++
		socket.on('close', () => open--)
	})
	const { port, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const scheme = tls ? 'https' : 'http'
	return {
		port,
		seen,
		open: () => open,
		at: (path, name = tls ? 'secure.test' : 'front.test') => `${scheme}://${name}:${port}${path}`,
	}
}

void t.test('no spelling of an address that is not public is reached', async (t) => {
	const urls = hostileUrls(canary.port)
	t.ok(urls.length >= 800, `${urls.length} addresses`)
	let parsed = 0
	for (const url of urls) {
		const code = await codeOf(guardedFetch(url, {}, options({ policy: anyone })))
		if (URL.canParse(url)) parsed++
		if (code !== (URL.canParse(url) ? 'address_refused' : 'invalid_request')) t.fail(`${JSON.stringify(url)}: ${code}`)
	}
	t.ok(parsed > urls.length - 20, `${parsed} are URLs`)
	t.equal(canary.touched(), 0, 'no connection was made')
})

void t.test('a policy that permits private addresses reaches the same URLs', async (t) => {
	const target = await startCanary(t)
	const reached: string[] = []
	for (const url of hostileUrls(target.port)) {
		const host = URL.parse(url)?.hostname ?? ''
		if (!/^(127\.0\.0\.1|localhost\.?|\[::1\])$/.test(host) || !url.includes(String(target.port))) continue
		const policy: FetchPolicy = { ...anyone, private_first: true }
		const code = await codeOf(guardedFetch(url, {}, options({ policy })).then((response) => response.text()))
		if (code === 'none') reached.push(url)
	}
	t.ok(reached.length > 40, `${reached.length} URLs of the corpus lead to this machine`)
	t.ok(target.touched() >= reached.length)
})

void t.test('a port that HTTP clients do not call is refused with the reason', async (t) => {
	await t.rejects(guardedFetch('http://front.test:1/', {}, options()), {
		code: 'address_refused',
		message: 'port 1 is reserved for another protocol, so HTTP clients do not call front.test:1; use another port',
	})
})

void t.test('names that the system resolves to this machine are not reached', async (t) => {
	for (const url of ownNames(canary.port)) {
		const code = await codeOf(guardedFetch(url, {}, { policy: anyone, max_bytes: 100, timeout_ms: 10_000 }))
		t.match(code, /^(address_refused|fetch_failed|fetch_timeout)$/, url)
	}
	t.equal(canary.touched(), 0)
})

void t.test(
	'a name is refused if any of its addresses is not public, and the message does not show the address',
	async (t) => {
		const url = `http://intranet.test:${canary.port}/`
		for (const answers of [
			[HERE],
			[{ address: '10.20.30.40', family: 4 }],
			[NOWHERE, HERE],
			[HERE, NOWHERE],
			[NOWHERE, { address: '::ffff:127.0.0.1', family: 6 }],
			[NOWHERE, { address: '::127.0.0.1', family: 6 }],
			[NOWHERE, { address: 'fe80::1%eth0', family: 6 }],
			[NOWHERE, { address: 'not an address', family: 4 }],
		]) {
			const about = answers.map(({ address }) => address).join(', ')
			try {
				await guardedFetch(url, {}, options({ policy: anyone, lookup: async () => answers }))
				t.fail(about)
			} catch (error) {
				t.ok(isFault(error, 'address_refused'), about)
				t.match(String(error), /intranet\.test leads to an address that is not public/)
				t.notMatch(String(error), /10\.20|127\.0|fe80|private|loopback/, 'the message does not disclose the address')
			}
		}
		t.equal(await codeOf(guardedFetch(url, {}, options({ policy: anyone, lookup: async () => [] }))), 'fetch_failed')
		t.equal(canary.touched(), 0)
	},
)

void t.test('a name is resolved once, and the checked address is used (DNS rebinding)', async (t) => {
	let lookups = 0
	const lookup = async (): Promise<(typeof HERE)[]> => (lookups++ === 0 ? [NOWHERE] : [HERE])
	const url = `http://flip.test:${canary.port}/`
	const code = await codeOf(guardedFetch(url, {}, options({ policy: anyone, lookup, timeout_ms: 300 })))
	t.match(code, /^fetch_(failed|timeout)$/)
	t.equal(lookups, 1)
	t.equal(canary.touched(), 0)
})

void t.test('a redirect to a refused address is not followed, for any status', async (t) => {
	const front = await startFront(t, (request, response) => {
		const [, status, target] = /^\/(\d+)\/(.*)$/.exec(request.url ?? '') ?? []
		response.writeHead(Number(status), { location: decodeURIComponent(target ?? '') }).end('go there')
	})
	const targets = hostileTargets(canary.port)
	for (const policy of [tester, { ...tester, private_first: true }]) {
		for (const status of [301, 302, 303, 307, 308]) {
			for (const target of targets) {
				const url = front.at(`/${status}/${encodeURIComponent(target)}`)
				const code = await codeOf(guardedFetch(url, {}, options({ policy })))
				if (code !== 'address_refused') t.fail(`${status} to ${target}: ${code}`)
			}
		}
	}
	t.equal(front.seen.length, 10 * targets.length)
	t.equal(canary.touched(), 0, 'no connection was made')
})

void t.test(
	'a private address that a caller may request is not reached by a redirect, not even from itself',
	async (t) => {
		const front = await startFront(t, (request, response) => {
			if (request.url === '/here') response.end('here')
			else response.writeHead(302, { location: '/here' }).end()
		})
		const policy: FetchPolicy = { ...anyone, private_first: true }
		const answer = await guardedFetch(`http://127.0.0.1:${front.port}/here`, {}, options({ policy }))
		t.equal(await answer.text(), 'here')
		for (const host of ['127.0.0.1', 'localhost'])
			t.equal(
				await codeOf(guardedFetch(`http://${host}:${front.port}/there`, {}, options({ policy }))),
				'address_refused',
				host,
			)
		t.strictSame(
			front.seen.map(({ url }) => url),
			['/here', '/there', '/there'],
		)
	},
)

void t.test('redirects follow the fetch standard, at most three', async (t) => {
	const front = await startFront(t, (request, response) => {
		const [, status, left] = /^\/(\d+)\/(\d+)$/.exec(request.url ?? '') ?? []
		if (left === '0') response.end('arrived')
		else response.writeHead(Number(status), { location: `/${status}/${Number(left) - 1}` }).end('moved')
	})
	for (const [status, sent, arrives] of [
		[301, 'POST', 'GET'],
		[302, 'POST', 'GET'],
		[303, 'POST', 'GET'],
		[303, 'PUT', 'GET'],
		[307, 'POST', 'POST'],
		[308, 'POST', 'POST'],
		[301, 'PUT', 'PUT'],
		[303, 'HEAD', 'HEAD'],
		[302, 'GET', 'GET'],
	] as const) {
		front.seen.length = 0
		const withBody = sent === 'POST' || sent === 'PUT'
		const init: GuardedInit = { method: sent, headers: { 'x-mine': '1', ...(withBody && { 'content-type': 'a/b' }) } }
		const response = await guardedFetch(
			front.at(`/${status}/1`),
			withBody ? { ...init, body: 'hello' } : init,
			options(),
		)
		t.equal(await response.text(), sent === 'HEAD' ? '' : 'arrived')
		t.equal(response.redirected, true)
		t.equal(response.url, front.at(`/${status}/0`))
		const [, last] = front.seen
		const keepsBody = arrives === sent && withBody
		t.equal(last?.method, arrives, `${status} ${sent}`)
		t.equal(last?.body, keepsBody ? 'hello' : '', `${status} ${sent}: body`)
		t.equal(last?.headers['content-type'], keepsBody ? 'a/b' : undefined, `${status} ${sent}: content-type`)
		t.equal(last?.headers['x-mine'], '1')
	}
	t.equal(await (await guardedFetch(front.at('/302/3'), {}, options())).text(), 'arrived')
	front.seen.length = 0
	t.equal(await codeOf(guardedFetch(front.at('/302/4'), {}, options())), 'fetch_failed')
	t.equal(front.seen.length, 4)
	t.equal(await codeOf(guardedFetch(front.at('/302/1'), {}, options({ redirects: 0 }))), 'fetch_failed')
	t.equal(await codeOf(guardedFetch(front.at('/302/1'), { redirect: 'error' }, options())), 'fetch_failed')
	const manual = await guardedFetch(front.at('/302/1'), { redirect: 'manual' }, options())
	t.equal(manual.status, 302)
	t.equal(manual.headers.get('location'), '/302/0')
	t.equal(await manual.text(), 'moved')
})

void t.test('another origin receives no token, cookie or key', async (t) => {
	const other = await startFront(t, (_request, response) => response.end('other'))
	const front = await startFront(t, (request, response) => {
		const location = request.url === '/same' ? '/end' : other.at('/end', 'other.test')
		if (request.url === '/end') response.end('same')
		else response.writeHead(307, { location }).end()
	})
	const headers = {
		authorization: 'Bearer t',
		cookie: 'a=b',
		'x-api-key': 'k',
		'proxy-authorization': 'p',
		accept: 'text/x',
		'content-type': 'text/x',
	}
	const init = { method: 'POST', headers, body: 'text' }
	await (await guardedFetch(front.at('/other'), init, options())).text()
	const [seen] = other.seen
	t.match(seen, { method: 'POST', body: 'text', headers: { accept: 'text/x', 'content-type': 'text/x' } })
	for (const name of ['authorization', 'cookie', 'x-api-key', 'proxy-authorization'])
		t.notOk(name in (seen?.headers ?? {}), name)

	await (await guardedFetch(front.at('/same'), init, options())).text()
	t.match(front.seen.at(-1)?.headers, { authorization: 'Bearer t', cookie: 'a=b', 'x-api-key': 'k' })
	t.notOk('proxy-authorization' in (front.seen.at(-1)?.headers ?? {}))
})

void t.test('a request cannot name another host than the checked one', async (t) => {
	const front = await startFront(t, (_request, response) => response.end())
	const headers = { host: 'internal.test', connection: 'upgrade', upgrade: 'websocket', 'content-length': '99' }
	await (await guardedFetch(front.at('/'), { headers }, options())).text()
	t.equal(front.seen[0]?.headers.host, `front.test:${front.port}`)
	t.notOk('upgrade' in (front.seen[0]?.headers ?? {}))
	for (const init of [
		{ method: 'CONNECT' },
		{ method: 'TRACE' },
		{ method: 'GET\r\nX: 1' },
		{ headers: { 'x-a': 'b\r\nx-c: d' } },
		{ headers: { 'x a': 'b' } },
		{ method: 'GET', body: 'text' },
		{ method: 'POST', body: new FormData() },
	])
		t.equal(await codeOf(guardedFetch(front.at('/'), init, options())), 'invalid_request', JSON.stringify(init))
	t.equal(front.seen.length, 1)
})

void t.test('a redirect from https to http is not followed, and the certificate must be valid', async (t) => {
	const fixture = (name: string): string =>
		readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url), 'utf8')
	const plain = await startFront(t, (_request, response) => response.end('plain'))
	const tls = { key: fixture('key'), cert: fixture('cert') }
	const secure = await startFront(
		t,
		(request, response) => {
			if (request.url === '/down') response.writeHead(302, { location: plain.at('/') }).end()
			else if (request.url === '/on') response.writeHead(302, { location: '/' }).end()
			else response.end('secure')
		},
		tls,
	)
	const failed = (message: RegExp): { code: string; message: RegExp } => ({ code: 'fetch_failed', message })
	await t.rejects(guardedFetch(secure.at('/'), {}, options()), failed(/does not trust the issuer.*EXTRA_CA_CERTS/))
	await t.rejects(guardedFetch(plain.at('/').replace('http:', 'https:'), {}, options()), failed(/does not speak TLS/))

	const trusted = getCACertificates('default')
	setDefaultCACertificates([...trusted, tls.cert])
	t.teardown(() => setDefaultCACertificates(trusted))
	t.equal(await (await guardedFetch(secure.at('/on'), {}, options())).text(), 'secure')
	t.equal(await codeOf(guardedFetch(secure.at('/down'), {}, options())), 'address_refused')
	await t.rejects(guardedFetch(secure.at('/', 'front.test'), {}, options()), failed(/certificate is for another name/))
	t.equal(plain.seen.length, 0)
})

void t.test('only declared hosts and protocols are reached', async (t) => {
	const front = await startFront(t, (request, response) => {
		if (request.url === '/away') response.writeHead(302, { location: front.at('/', 'other.test') }).end()
		else response.end('here')
	})
	const status = (policy: Partial<FetchPolicy>, url: string): Promise<string> =>
		codeOf(guardedFetch(url, {}, options({ policy: { ...tester, ...policy } })))
	t.equal(await status({ hosts: ['front.test'] }, front.at('/')), 'none')
	t.equal(await status({ hosts: ['FRONT.test.'] }, front.at('/')), 'none')
	t.equal(await status({ hosts: [`front.test:${front.port}`] }, front.at('/', 'Front.Test.')), 'none')
	t.equal(await status({ hosts: ['front.test:443'] }, front.at('/')), 'address_refused')
	t.equal(await status({ hosts: ['front.test'] }, front.at('/away')), 'address_refused')
	t.equal(await status({ hosts: ['ront.test', 'test', '*.test', ''] }, front.at('/')), 'address_refused')
	t.equal(await status({ hosts: [] }, front.at('/')), 'address_refused')
	t.equal(await status({ hosts: ['front.test'], private_hosts: [] }, front.at('/')), 'address_refused')
	t.equal(await status({ protocols: ['https:'] }, front.at('/')), 'address_refused')
	for (const listed of ['127.0.0.1', `127.0.0.1:${front.port}`, '127.1'])
		t.equal(await status({ private_hosts: [listed] }, front.at('/', '127.0.0.1')), 'none', listed)
	for (const listed of ['127.0.0.1:1', '127.0.0.2', 'localhost'])
		t.equal(await status({ private_hosts: [listed] }, front.at('/', '127.0.0.1')), 'address_refused', listed)
	for (const listed of ['::1', '[::1]', '[::1]:7', '0:0::1'])
		t.equal(
			await codeOf(
				checkAddress('http://[::1]:7/', { policy: { ...anyone, private_hosts: [listed] }, timeout_ms: 100 }),
			),
			'none',
			listed,
		)
	const policy = { ...anyone, private_hosts: ['169.254.169.254', '0.0.0.0'], private_first: true }
	for (const host of policy.private_hosts)
		t.equal(
			await codeOf(guardedFetch(`http://${host}/`, {}, options({ policy }))),
			'address_refused',
			`${host}, always`,
		)
	const hint = 'an operator can list it in some.setting'
	await t.rejects(guardedFetch('http://10.0.0.1/', {}, options({ policy: { ...anyone, hint } })), {
		message: /10\.0\.0\.1 is not a public address \(private\).*some\.setting/,
	})
})

void t.test('a body is bounded after decompression, and streams', async (t) => {
	const gates: ServerResponse[] = []
	const front = await startFront(t, (request, response) => {
		if (request.url === '/exact') response.end('x'.repeat(10_000))
		else if (request.url === '/large') response.end('x'.repeat(10_001))
		else if (request.url === '/endless') {
			const write = (): void => void (response.destroyed || response.write('x'.repeat(1_000), write))
			write()
		} else if (request.url === '/zipped') {
			response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('x'.repeat(10_000)))
		} else if (request.url === '/bomb') {
			response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(64 * 1024 * 1024)))
		} else if (request.url === '/layers') {
			const layers = gzipSync(gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024))))
			response.writeHead(200, { 'content-encoding': 'gzip, gzip, gzip' }).end(layers)
		} else if (request.url === '/nothing') {
			response.writeHead(200, { 'content-encoding': 'gzip' })
			const members = Buffer.concat(Array.from({ length: 100 }, () => gzipSync('')))
			const write = (): void => void (response.destroyed || response.write(members, write))
			write()
		} else if (request.url === '/headers') response.writeHead(200, { 'x-much': 'x'.repeat(20_000) }).end()
		else if (request.url === '/cut') {
			response.writeHead(200, { 'content-length': '100' }).write('half')
			setImmediate(() => response.destroy())
		} else {
			response.write('first')
			gates.push(response)
		}
	})
	const read = (path: string): Promise<string> =>
		codeOf(guardedFetch(front.at(path), {}, options()).then((response) => response.text()))
	t.equal((await (await guardedFetch(front.at('/exact'), {}, options())).text()).length, 10_000)
	t.equal((await (await guardedFetch(front.at('/zipped'), {}, options())).text()).length, 10_000)
	for (const path of ['/large', '/endless', '/bomb', '/layers', '/nothing', '/headers'])
		t.equal(await read(path), 'fetch_too_large', path)
	t.equal(await read('/cut'), 'fetch_failed')

	const answer = await guardedFetch(front.at('/stream'), {}, options())
	const reader = (answer.body as ReadableStream<Uint8Array>).getReader()
	t.equal(Buffer.from((await reader.read()).value ?? '').toString(), 'first', 'before the answer has ended')
	gates[0]?.end('second')
	t.equal(Buffer.from((await reader.read()).value ?? '').toString(), 'second')
	t.equal((await reader.read()).done, true)
	t.ok(answer instanceof Response)
	t.ok(await eventually(() => front.open() === 0), 'no connection is left')
})

void t.test('a request ends at its time limits, and when it is aborted', async (t) => {
	const front = await startFront(t, (request, response) => {
		if (request.url === '/silent') return
		response.writeHead(200).write('x')
		if (request.url !== '/drip') return
		const timer = setInterval(() => response.write('x'), 20)
		response.on('close', () => clearInterval(timer))
	})
	const read = (path: string, changes: Partial<GuardedOptions>): Promise<string> =>
		codeOf(guardedFetch(front.at(path), {}, options(changes)).then((response) => response.text()))
	for (const path of ['/silent', '/stalled', '/drip'])
		t.equal(await read(path, { timeout_ms: 200 }), 'fetch_timeout', path)
	t.equal(await read('/silent', { timeout_ms: Infinity, idle_ms: 200 }), 'fetch_timeout', 'idle before the headers')
	t.equal(await read('/stalled', { timeout_ms: Infinity, idle_ms: 200 }), 'fetch_timeout', 'idle in the body')
	const never = (): Promise<never> => new Promise(() => {})
	t.equal(await read('/', { timeout_ms: 100, lookup: never }), 'fetch_timeout', 'a silent name server')

	const reason = new Error('no longer wanted')
	for (const path of ['/silent', '/stalled']) {
		const controller = new AbortController()
		const before = front.seen.length
		const reading = guardedFetch(front.at(path), { signal: controller.signal }, options()).then((answer) =>
			answer.text(),
		)
		reading.catch(() => {})
		await eventually(() => front.seen.length > before)
		controller.abort(reason)
		await t.rejects(reading, reason)
	}
	await t.rejects(guardedFetch(front.at('/'), {}, options({ signal: AbortSignal.abort(reason) })), reason)
	await guardedFetch(front.at('/stalled'), {}, options({ timeout_ms: 2_000 })) // its body is not read
	const cancelled = await guardedFetch(front.at('/stalled'), {}, options())
	await cancelled.body?.cancel()
	t.ok(await eventually(() => front.open() === 0), 'no connection is left')
})

void t.test('a fetcher reuses connections, supports endless streams, and closes them when disposed', async (t) => {
	const sockets = new Set<unknown>()
	const front = await startFront(t, (request, response) => {
		sockets.add(request.socket)
		if (request.url === '/events') {
			response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
		} else if (request.url === '/moved') response.writeHead(307, { location: '/' }).end()
		else response.end('once')
	})
	const named = `http://127.0.0.1:${front.port}/mcp`
	const policy: FetchPolicy = { ...anyone, private_first: true }
	const fetcher = fetcherFor(named, options({ policy, max_bytes: Infinity, timeout_ms: Infinity }))
	for (let n = 0; n < 10; n++) t.equal(await (await fetcher(named, { method: 'POST', body: '{}' })).text(), 'once')
	t.ok(sockets.size <= 2, `${sockets.size} connections for 10 requests`)

	t.equal(
		await codeOf(fetcher(`http://127.0.0.1:${front.port}/moved`)),
		'address_refused',
		'a reused connection is checked as well',
	)
	t.equal(await codeOf(fetcher(`http://127.0.0.1:${canary.port}/`)), 'address_refused', 'another port')
	t.equal(await codeOf(fetcher(`http://localhost:${front.port}/`)), 'address_refused', 'another name')

	const events = await fetcher(new URL(`http://127.0.0.1:${front.port}/events`))
	const reader = (events.body as ReadableStream<Uint8Array>).getReader()
	t.match(Buffer.from((await reader.read()).value ?? '').toString(), /data: 1/)
	const next = codeOf(reader.read())
	await fetcher[Symbol.asyncDispose]()
	t.equal(await next, 'fetch_failed')
	t.equal(await codeOf(fetcher(named)), 'fetch_failed')
	await eventually(() => front.open() === 0)
	t.equal(canary.touched(), 0)
})

void t.test('proxies of the environment are not used', async (t) => {
	const front = await startFront(t, (_request, response) => response.end('direct'))
	const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'NODE_USE_ENV_PROXY']
	const before = names.map((name) => [name, process.env[name]] as const)
	for (const name of names) process.env[name] = name === 'NODE_USE_ENV_PROXY' ? '1' : `http://127.0.0.1:${canary.port}`
	t.teardown(() => {
		for (const [name, value] of before) {
			if (value === undefined) delete process.env[name]
			else process.env[name] = value
		}
	})
	t.equal(await (await guardedFetch(front.at('/'), {}, options())).text(), 'direct')
	t.equal(canary.touched(), 0)
})

void t.test('an address can be checked without a request', async (t) => {
	const check = (url: string, changes: Partial<GuardedOptions> = {}): Promise<string> =>
		codeOf(checkAddress(url, options({ policy: anyone, timeout_ms: 100, ...changes })))
	t.equal(await check('http://front.test/'), 'address_refused')
	t.equal(await check('http://front.test/', { lookup: async () => [NOWHERE] }), 'none')
	t.equal(await check('http://front.test/', { lookup: () => Promise.reject(new Error('unknown')) }), 'none')
	t.equal(await check('http://front.test/', { lookup: () => new Promise(() => {}) }), 'none')
	t.equal(await check('ftp://front.test/'), 'address_refused')
	t.equal(await check('http://10.0.0.1/'), 'address_refused')
	t.equal(await check('http://10.0.0.1/', { policy: { ...anyone, private_first: true } }), 'none')
	t.equal(await check('nonsense'), 'invalid_request')
})
