/**
 * A page of another origin cannot use or read a gateway in loopback mode, in any way in which a real browser sends requests, and under
 * any name. Each way is also tried on a second gateway, behind a relay that removes the headers on which the rule for local callers
 * depends. There it must succeed: a way that does not work in this browser must not count as refused.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import t from 'tap'
import type { Test } from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { Answer, TestGateway } from '../support/gateway.ts'
import { startModelServer } from '../support/model-server.ts'
import { providersAt } from '../support/providers.ts'
import { eventually, WAIT_LIMIT_MS } from '../support/wait.ts'
import { noBrowser, startBrowser } from './chromium.ts'
import { speculations, startRelay, startSite } from './servers.ts'
import type { Relay, Upstreams } from './servers.ts'

const STREAM = '/api/agents/ada/chat/stream'
/** A route of a plugin, which has no code for the rule. */
const PLUGIN = '/v1/shop/start'

/** Names for which browsers send Sec-Fetch-Site. */
const trusted = ['127.0.0.1', 'localhost', '[::1]']
/** Also an IPv4 address written as IPv6, a name of server.allowed_hosts, and a name that an attacker binds to loopback. */
const hosts = [...trusted, '[::ffff:7f00:1]', 'gateway.lan', 'rebound.example']

interface Site {
	origin: string
	path?: string
	/** Hosts under which its pages address the gateway. */
	tries: string[]
	/** Paths for GET and for other methods. */
	get: string
	post: string
}

const runs = '/v1/agents/ada/runs'
const sites: Site[] = [
	{ origin: 'evil.example', tries: hosts, get: STREAM, post: runs },
	{ origin: '127.0.0.1', tries: ['127.0.0.1', '[::1]', '[::ffff:7f00:1]'], get: STREAM, post: runs },
	{ origin: 'localhost', tries: ['localhost', '127.0.0.1', 'gateway.lan'], get: PLUGIN, post: '/mcp' },
	{ origin: '[::1]', tries: ['[::1]', '[::ffff:7f00:1]', 'gateway.lan'], get: PLUGIN, post: '/mcp' },
	{ origin: 'evil.example', path: '/opaque', tries: ['127.0.0.1', '[::ffff:7f00:1]'], get: STREAM, post: runs },
]

/** Ways for which Chromium sends no request. */
const unsent = new Set([
	'fetch same-origin',
	'icon',
	'manifest',
	'preconnect, dns-prefetch',
	'prerender link',
	'shared worker',
	'svg use',
	'worker',
])

/** Refused without the rule as well: by the body's type or the preflight. A WebSocket that opens changes nothing. */
const refusedAnyway = /post(?! without a body)|with a body|json|delete|with a header|ping|report|WebSocket/

type Group = 'visible' | 'silent' | 'frames' | 'silentFrames' | 'windows'
type Order = [way: string, url: string]

const config = 'server: {allowed_hosts: [gateway.lan]}\nplugins: {mcp-server: true, shop: true}\n'
const shop = `export default { name: 'shop', http(server, ctx) {
	server.route({ method: ['GET', 'POST'], path: '${PLUGIN}', options: { auth: { access: { scope: ['runs:write', '*'] } } }, handler: async ({ query }) => {
		await ctx.emit({ event_type: 'shop.started', payload: { message: query.message } })
		return 'started'
	} })
} }`

void t.test('a page of another origin cannot use or read a gateway', { skip: noBrowser }, async (t) => {
	const model = await startModelServer()
	t.teardown(() => model.stop())
	model.on(/./, 'Hello.')
	const provider = `default_provider: main\n${providersAt({ main: model.url })}`
	const gateway = await startWith(t, config + provider)
	const open = await startWith(t, config + 'default_provider: offline\nproviders: {offline: {kind: offline}}\n')
	const guarded = await startRelay(t, upstreamsOf(gateway))
	const bare = await startRelay(t, upstreamsOf(open), { bare: true })
	const port = await startSite(t)
	const browser = await startBrowser(['gateway.lan', '*.example'])
	t.teardown(() => browser.close())

	const at = (host: string, { port }: Relay, path: string, message: string): string =>
		`http://${host}:${port}${path}?${new URLSearchParams({ message })}`

	const context = await browser.newContext()
	/** One per site, since opening a page costs more than most of its requests. */
	const pages = new Map<string, Page>()
	const pageOf = async ({ origin, path = '/page' }: Pick<Site, 'origin' | 'path'>): Promise<Page> => {
		const address = `http://${origin}:${port}${path}`
		const page = pages.get(address) ?? (await context.newPage())
		if (!pages.has(address)) await page.goto(address)
		pages.set(address, page)
		return page
	}
	// Another profile: Chromium loads nothing speculatively from an origin with a service worker, and the pages register one.
	const fresh = await browser.newContext()
	for (const profile of [context, fresh]) profile.setDefaultTimeout(WAIT_LIMIT_MS)
	/** Opens an address until `arrived` settles. */
	const visit = async (origin: string, path: string, arrived: () => Promise<unknown>): Promise<void> => {
		const page = await fresh.newPage()
		await page.goto(`http://${origin}:${port}${path}`)
		await arrived()
		await page.close()
	}
	const groups = await evaluate<Record<Group, string[]>>(await pageOf({ origin: '127.0.0.1' }), 'window.groups')
	const typing = await context.newPage()

	await t.test('programs, pages of the gateway and typed addresses that only read still work', async (t) => {
		const page = typing
		for (const host of [...trusted, 'gateway.lan']) {
			const read = await page.goto(at(host, guarded, '/v1/agents', 'typed'))
			t.equal(read?.status(), 200, host)
			t.match(await read?.text(), /"ada"/, host)
		}
		await page.goto(at('localhost', guarded, '/v1/agents', 'typed'))
		t.strictSame(
			await evaluate(
				page,
				`Promise.all([
					new Promise((resolve) => { const source = new EventSource('${STREAM}?message=own'); source.onopen = source.onerror = ({ type }) => { source.close(); resolve(type) } }),
					new Promise((resolve) => { const socket = new WebSocket('/api/agents/ada/chat/ws'); socket.onopen = socket.onerror = ({ type }) => { socket.close(); resolve(type) } }),
					fetch('${runs}', { method: 'POST', body: '{"prompt":"own"}', headers: { 'content-type': 'application/json' } }).then(({ status }) => status),
					fetch('${PLUGIN}?message=own').then(({ status }) => status),
				])`,
			),
			['open', 'open', 200, 200],
		)
		const { stdout } = await promisify(execFile)('curl', ['-sS', '-m', '60', at('127.0.0.1', guarded, STREAM, 'curl')])
		t.match(stdout, /data: /)
		await eventually(async () => (await runsOf(gateway)).filter(({ status }) => status !== 'completed'), isEmpty)
		t.strictSame((await runsOf(gateway)).map(({ prompt }) => String(prompt)).toSorted(), ['curl', 'own', 'own'])
	})

	const before = { ...(await stateOf(gateway)), requests: model.requests().length }
	t.equal(before.requests, 3)
	guarded.arrived.clear()

	const ordersOf = ({ get, post, origin, path }: Site, host: string, ways: string[], to: Relay): Order[] =>
		ways.map((way) => {
			const isPost = /\bpost\b|beacon|delete|ping|report/.test(way)
			const isSocket = way === 'WebSocket'
			return [way, at(host, to, isSocket ? STREAM : isPost ? post : get, `${origin}${path ?? ''} > ${host}: ${way}`)]
		})

	/** Makes a page send requests, and waits for those that this browser sends from there. */
	const attempt = async (site: Site, orders: Order[], { arrived }: Relay): Promise<void> => {
		await evaluate(await pageOf(site), `window.attempt(${JSON.stringify(orders)})`)
		const marks = orders.filter(([way, url]) => isSent(site, way, url)).map(([, url]) => markOf(url))
		await eventually(() => marks.filter((mark) => !arrived.has(mark)), isEmpty)
		const own = new Set([typing, ...pages.values()])
		for (const window of context.pages()) if (!own.has(window)) await window.close()
	}
	for (const site of sites) {
		await t.test(`pages at ${site.origin}${site.path ?? ''}`, async () => {
			const ways = [...groups.visible, ...groups.silent]
			const orders = site.tries.flatMap((host) => ordersOf(site, host, ways, guarded))
			await attempt(site, orders, guarded)
		})
	}
	await t.test('frames and windows', async () => {
		const [evil, local] = sites as [Site, Site]
		const frames = [...groups.frames, ...groups.silentFrames]
		for (const [site, host, ways] of [
			[evil, 'gateway.lan', frames],
			[local, '127.0.0.1', frames],
			[evil, '127.0.0.1', groups.windows],
		] as const) {
			await attempt(site, ordersOf(site, host, [...ways], guarded), guarded)
		}
	})

	await t.test('speculation rules', async () => {
		const pairs = { 'evil.example': '127.0.0.1', '127.0.0.1': '127.0.0.1', localhost: '[::1]', '[::1]': 'localhost' }
		for (const [origin, host] of Object.entries(pairs)) {
			// A route that only reads is refused as well.
			const path = origin === '[::1]' ? '/v1/agents' : STREAM
			const markFor = (host: string, by: string): string => `${origin} > ${host}: ${by}`
			// Chromium loads nothing speculatively at the other names, and follows redirects from secure pages only.
			const targets = [host, ...hosts.slice(trusted.length)].map((host) =>
				Object.fromEntries(speculations.map((by) => [by, at(host, guarded, path, markFor(host, by))])),
			)
			const sent = speculations.filter((by) => trusted.includes(origin) || !by.startsWith('redirect'))
			await visit(origin, speculate(targets), () =>
				eventually(() => sent.map((by) => markFor(host, by)).filter((mark) => !guarded.arrived.has(mark)), isEmpty),
			)
		}
	})

	await t.test('typed addresses, redirects, reloads and steps back', async (t) => {
		const page = typing
		for (const host of ['127.0.0.1', '[::ffff:7f00:1]', 'gateway.lan']) {
			const to = at(host, guarded, STREAM, `typed > ${host}`)
			const redirect = `http://evil.example:${port}/go?to=${encodeURIComponent(to)}`
			const answers = [
				await page.goto(to),
				await page.goto(redirect),
				await page.reload(),
				await page.goBack(),
				await page.goForward(),
			]
			t.strictSame(
				answers.map((answer) => answer?.status()),
				answers.map(() => 401),
				host,
			)
		}
	})

	await t.test('every way of this browser was tried and refused', async (t) => {
		const tried = new Set([...guarded.arrived.keys()].map((mark) => mark.split(': ')[1]))
		const ways = [...Object.values(groups).flat(), ...speculations]
		t.strictSame(new Set(ways.filter((way) => !tried.has(way))), unsent)
		const answers = [...guarded.arrived].flatMap(([mark, all]) => all.map((one) => ({ mark, ...one })))
		t.strictSame(
			answers.filter(({ method, status }) => (method === 'GET' ? status !== 401 : status < 400)),
			[],
			`of ${answers.length} requests`,
		)
	})

	await t.test('a page cannot observe which agents exist', async (t) => {
		const compare = async (to: Relay, host: string, ways: string[]): Promise<string[]> => {
			const orders = ['ada', 'nobody'].flatMap((name) =>
				ways.map((way): Order => [way, at(host, to, `/v1/agents/${name}`, way)]),
			)
			const page = await pageOf({ origin: 'evil.example' })
			const observed = await evaluate<string[]>(page, `window.attempt(${JSON.stringify(orders)})`)
			t.equal(await evaluate(page, measured), 0, `${host}: sizes and statuses of answers`)
			return ways.filter((_, index) => observed[index] !== observed[index + ways.length])
		}
		t.strictSame(await compare(guarded, '127.0.0.1', groups.visible), [])
		t.strictSame(await compare(guarded, '[::ffff:7f00:1]', groups.visible), [])
		t.strictSame(await compare(guarded, 'gateway.lan', [...groups.visible, ...groups.frames]), [])
		t.strictSame(await compare(bare, 'gateway.lan', ['prefetch']), ['prefetch'], 'without the rule')
	})

	await t.test('without the rule, each of these ways changes something', async (t) => {
		bare.arrived.clear()
		const site = { origin: '127.0.0.1', get: PLUGIN, post: PLUGIN, tries: [] }
		const markFor = (way: string): string => `127.0.0.1 > 127.0.0.1: ${way}`
		const target = Object.fromEntries(speculations.map((by) => [by, at('127.0.0.1', bare, PLUGIN, markFor(by))]))
		await visit('127.0.0.1', speculate([target]), () =>
			eventually(() => speculations.map(markFor).filter((mark) => !bare.arrived.has(mark)), isEmpty),
		)
		const typed = at('127.0.0.1', bare, PLUGIN, markFor('typed'))
		await visit('evil.example', `/go?to=${encodeURIComponent(typed)}`, async () => {})
		const { windows, ...others } = groups
		const ways = Object.values(others).flat()
		for (const some of [ways, windows]) await attempt(site, ordersOf(site, '127.0.0.1', some, bare), bare)

		const { body } = await open.request('GET', '/v1/audit?event_type=shop.started&limit=500')
		const changed = new Set(body.events.map(({ payload }: Answer) => payload.message))
		for (const way of [...ways, ...windows, ...speculations, 'typed'].filter(
			(way) => !unsent.has(way) && !refusedAnyway.test(way),
		))
			t.ok(changed.has(markFor(way)), way)
		t.equal(bare.arrived.get(markFor('WebSocket'))?.[0]?.status, 101)
	})

	await browser.close()
	await t.test('agents, runs, events and model requests have not changed', async (t) => {
		t.strictSame({ ...(await stateOf(gateway)), requests: model.requests().length }, before)
		const { body } = await gateway.request('GET', '/v1/audit?event_type=security.violation&limit=500')
		const reasons = new Set(body.events.map(({ payload }: Answer) => payload.reason))
		t.strictSame(reasons, new Set(['foreign_page']))
	})
})

async function startWith(t: Test, config: string): Promise<TestGateway> {
	const gateway = await startGateway({ config, files: { 'plugins/shop/index.js': shop }, madeUpEvents: true })
	t.teardown(() => gateway.stop())
	await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	return gateway
}

function upstreamsOf({ url, running }: TestGateway): Upstreams {
	return { main: url, legacy: running.gateway.status.url('legacy') ?? '' }
}

async function runsOf(gateway: TestGateway): Promise<Answer[]> {
	return (await gateway.request('GET', '/v1/runs?limit=500')).body.runs
}

async function stateOf(gateway: TestGateway): Promise<Record<string, unknown>> {
	const { body: agents } = await gateway.request('GET', '/v1/agents')
	const { body: audit } = await gateway.request('GET', '/v1/audit?limit=500')
	const events = audit.events.filter(({ event_type }: Answer) => event_type !== 'security.violation')
	return { agents, events, runs: await runsOf(gateway) }
}

/** Runs code in a page. Playwright would wait for its result without a limit. */
async function evaluate<T>(page: Page, code: string): Promise<T> {
	const late = Promise.withResolvers<never>()
	const timer = setTimeout(
		() => late.reject(new Error(`the page did not settle: ${code.slice(0, 200)}`)),
		WAIT_LIMIT_MS,
	)
	try {
		return await Promise.race([page.evaluate<T>(code), late.promise])
	} finally {
		clearTimeout(timer)
	}
}

function speculate(targets: Record<string, string>[]): string {
	return `/speculate?to=${encodeURIComponent(JSON.stringify(targets))}`
}

/** Whether this browser sends such a request from a page of that site. */
function isSent({ origin, path }: Site, way: string, url: string): boolean {
	const isSecure = trusted.includes(origin) && path === undefined
	if (way === 'fetch later') return isSecure && trusted.includes(new URL(url).hostname)
	if (way === 'fetch in a service worker' || way === 'worklet') return isSecure
	return !unsent.has(way)
}

function markOf(url: string): string {
	return new URL(url).searchParams.get('message') ?? ''
}

/** The number of answers of other origins whose status or size the page can see. */
const measured = `performance.getEntriesByType('resource').filter(({ name, responseStatus, transferSize, decodedBodySize }) =>
	!name.startsWith(origin) && (responseStatus || transferSize || decodedBodySize)).length`

function isEmpty(list: readonly unknown[]): boolean {
	return list.length === 0
}
