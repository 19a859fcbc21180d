import { networkInterfaces } from 'node:os'
import t from 'tap'
import { isLoopback, networkOf } from '../../../plugins/auth/address.ts'
import { whyNotLocal } from '../../../plugins/auth/local.ts'
import type { Arrival } from '../../../plugins/auth/local.ts'
import { startGateway } from '../../support/gateway.ts'
import { sendRaw } from './raw.ts'

interface Row {
	from?: string
	at?: string
	url?: string
	host?: string
	headers?: [name: string, value: string][]
	/** Absent: it is local. */
	because?: RegExp
}

const proxy = /proxy/
const foreignHost = /Host is neither/
const foreignOrigin = /Origin is another/
const foreignSite = /Sec-Fetch-Site/
const foreignPage = /Referer is a page of another origin/
const foreignTarget = /target names another host/
const elsewhere = /another machine/

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
	'Host that begins like a good one': { host: 'localhost.evil.example', because: foreignHost },
	'Host that ends like a good one': { host: 'evil-localhost', because: foreignHost },
	'Host with a user name': { host: 'localhost@evil.example', because: foreignHost },
	'Host with two values': { host: 'localhost, evil.example', because: foreignHost },
	'Host of the network': { host: '192.168.1.2:3000', because: foreignHost },
	'Host 0.0.0.0': { host: '0.0.0.0:3000', because: foreignHost },
	'Host as a number that some clients take for an address': { host: '2130706433', because: foreignHost },
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
	'Origin with the port left out, where it is 80': { host: 'localhost:80', headers: [['Origin', 'http://localhost']] },
	'Origin of a foreign site': { headers: [['Origin', 'https://evil.example']], because: foreignOrigin },
	'Origin null': { headers: [['Origin', 'null']], because: foreignOrigin },
	'Origin at another port': { headers: [['Origin', 'http://127.0.0.1:8080']], because: foreignOrigin },
	'Origin of another name of this machine': { headers: [['Origin', 'http://localhost:3000']], because: foreignOrigin },
	'Origin with https': { headers: [['Origin', 'https://127.0.0.1:3000']], because: foreignOrigin },
	'empty Origin': { headers: [['Origin', '']], because: foreignOrigin },
	'a good Origin and a second, foreign one': {
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
	'Referer that is no address': { headers: [['Referer', 'about:blank']], because: foreignPage },
	'a good Referer and a second, foreign one': {
		headers: [
			['Referer', 'http://127.0.0.1:3000/'],
			['Referer', 'https://evil.example/'],
		],
		because: foreignPage,
	},
	'Referer of a foreign site, where Origin says the same origin': {
		headers: [
			['Origin', 'http://127.0.0.1:3000'],
			['Referer', 'https://evil.example/'],
		],
	},
	'Referer of a foreign site, where the user typed the address': {
		headers: [
			['Sec-Fetch-Site', 'none'],
			['Referer', 'https://evil.example/'],
		],
	},

	'a whole address as target': { url: 'http://127.0.0.1:3000/v1/agents' },
	'a whole address of another host as target': { url: 'http://evil.example/v1/agents', because: foreignTarget },
	'a whole address with a user name as target': {
		url: 'http://127.0.0.1:3000@evil.example/v1/agents',
		because: foreignTarget,
	},
	'a whole address with https as target': { url: 'https://127.0.0.1:3000/v1/agents', because: foreignTarget },
	'a path that begins with two slashes': { url: '//evil.example/v1/agents' },
}

for (const [name, row] of Object.entries(rows)) {
	void t.test(`${row.because ? 'is not local' : 'is local'}: ${name}`, async (t) => {
		const why = whyNotLocal(arrivalOf(row), ['gateway.lan'])
		if (row.because) t.match(why, row.because)
		else t.equal(why, null)
	})
}

void t.test('addresses count as loopback, and are counted by network, in any of their forms', async (t) => {
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
	const gateway = await startGateway({ config: 'server: {host: 0.0.0.0, allowed_hosts: [gateway.lan]}' })
	t.teardown(() => gateway.stop())
	const host = `Host: ${new URL(gateway.url).host}`
	const get = 'GET /v1/agents HTTP/1.1'
	const ask = (...head: string[]) => sendRaw(gateway.url, head)

	await t.test('lets a local request in without a token', async (t) => {
		t.equal((await ask(get, host)).status, 200)
		t.equal((await ask(get, 'Host: gateway.lan')).status, 200)
	})
	await t.test('asks a request with any sign of a proxy or a foreign page for a token', async (t) => {
		for (const header of ['X-Forwarded-For: 127.0.0.1', 'Origin: https://evil.example', 'Sec-Fetch-Site: cross-site']) {
			const { status, body } = await ask(get, host, header)
			t.equal(status, 401, header)
			t.match(body.message, /does not count as local, since its/, header)
		}
		t.equal((await ask(get, 'Host: evil.example')).status, 401)
		t.equal((await ask('GET http://evil.example/v1/agents HTTP/1.1', host)).status, 401)
	})
	await t.test('refuses more than one Host header on every route', async (t) => {
		for (const path of ['/v1/agents', '/healthz', '/nowhere']) {
			const { status, body } = await ask(`GET ${path} HTTP/1.1`, host, 'Host: evil.example')
			t.match(
				{ status, code: body.code, message: body.message },
				{ status: 400, code: 'invalid_request', message: /one Host/ },
			)
		}
		t.equal((await ask(get, host, host)).status, 400, 'also twice the same')
	})
	await t.test('refuses a request without a Host header, also over HTTP/1.0', async (t) => {
		t.equal((await ask(get)).status, 400)
		t.equal((await ask('GET /v1/agents HTTP/1.0')).status, 400)
		t.equal((await ask('GET /v1/agents HTTP/1.0', host)).status, 200)
	})
	await t.test('asks a request that comes by an address of the network for a token', async (t) => {
		const own = ownAddress()
		if (own === undefined) {
			t.pass('this machine has no address but loopback')
			return
		}
		const { status, body } = await sendRaw(gateway.url, [get, host], own)
		t.equal(status, 401)
		t.match(body.message, /another machine/)
	})
})

function ownAddress(): string | undefined {
	const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
	return all.find((one) => one.family === 'IPv4' && !one.internal)?.address
}

function arrivalOf({
	from = '127.0.0.1',
	at = '127.0.0.1',
	url = '/v1/agents',
	host = '127.0.0.1:3000',
	headers = [],
}: Row): Arrival {
	return {
		rawHeaders: ['Host', host, 'Accept', '*/*', ...headers.flat()],
		url,
		socket: { remoteAddress: from, localAddress: at },
	}
}
