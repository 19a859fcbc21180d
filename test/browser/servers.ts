/** Servers around the gateways: sites of other origins, and relays that count the requests of a browser. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import type { IncomingMessage, RequestListener } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'

/** Requests by their mark, the value of `message` in the query. */
export type Arrived = Map<string, { method: string; status: number }[]>

export interface Relay {
	port: number
	arrived: Arrived
}

/** The addresses of a gateway's API and of its chat API. */
export interface Upstreams {
	main: string
	legacy: string
}

/**
 * Forwards requests byte for byte. `bare`: without the headers that state a request's origin, and without those that hide responses
 * from foreign pages. The gateway behind it is then like one without the rule for local callers.
 */
export async function startRelay(t: Test, { main, legacy }: Upstreams, { bare = false } = {}): Promise<Relay> {
	const arrived: Arrived = new Map()
	const upstreamOf = (request: IncomingMessage): URL => new URL(request.url?.startsWith('/api/') ? legacy : main)
	const headOf = (request: IncomingMessage): string[] =>
		bare ? ['Host', upstreamOf(request).host, ...without(request.rawHeaders, originHeaders)] : request.rawHeaders
	const port = await listen(
		t,
		(request, response) => {
			const { hostname, port } = upstreamOf(request)
			const { method, url: path } = request
			const forwarded = http.request({ hostname, port, method, path, headers: headOf(request), setHost: false })
			forwarded.on('response', (answer) => {
				count(arrived, request, answer.statusCode ?? 0)
				const headers = bare ? without(answer.rawHeaders, isolationHeaders) : answer.rawHeaders
				response.writeHead(answer.statusCode ?? 0, headers)
				answer.on('error', () => response.destroy()).pipe(response)
			})
			forwarded.on('error', () => response.destroy())
			response.on('close', () => forwarded.destroy())
			request.pipe(forwarded)
		},
		(request, socket, head) => {
			const { hostname, port } = upstreamOf(request)
			const forwarded = connect(Number(port), hostname)
			forwarded.once('data', (data) => count(arrived, request, Number(/^HTTP\/1\.1 (\d+)/.exec(data.toString())?.[1])))
			const lines = headOf(request).map((text, index) => text + (index % 2 === 0 ? ': ' : '\r\n'))
			forwarded.write(`GET ${request.url} HTTP/1.1\r\n${lines.join('')}\r\n`)
			forwarded.write(head)
			forwarded.on('error', () => socket.destroy()).on('close', () => socket.destroy())
			socket.on('error', () => forwarded.destroy()).on('close', () => forwarded.destroy())
			socket.pipe(forwarded).pipe(socket)
		},
	)
	return { port, arrived }
}

const originHeaders = /^(host|origin|referer|purpose|sec-purpose|sec-fetch-.*)$/i
const isolationHeaders = /^(cross-origin-resource-policy|x-frame-options)$/i

function without(raw: string[], names: RegExp): string[] {
	return raw.filter((_, index) => !names.test(raw[index - (index % 2)] ?? ''))
}

function count(arrived: Arrived, { url = '', method = '' }: IncomingMessage, status: number): void {
	const mark = URL.parse(url, 'http://x')?.searchParams.get('message')
	if (typeof mark === 'string') arrived.set(mark, [...(arrived.get(mark) ?? []), { method, status }])
}

/** Sites of other origins, at every host name. `to` in the query: where their pages send requests. */
export function startSite(t: Test): Promise<number> {
	const script = readFileSync(new URL('page.js', import.meta.url), 'utf8')
	return listen(t, (request, response) => {
		const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x')
		const to = searchParams.get('to') ?? ''
		const answer = (text: string, headers: Record<string, string> = {}, status = 200): void => {
			const always = { 'content-type': 'text/html', 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' }
			response.writeHead(status, { ...always, ...headers }).end(text)
		}
		const page = `<!doctype html><title>another origin</title><body><script>${script}</script>`
		if (pathname === '/go') return void response.writeHead(302, { location: to }).end()
		if (pathname === '/page') return answer(page)
		if (pathname === '/opaque') return answer(page, { 'content-security-policy': 'sandbox allow-scripts allow-forms' })
		if (pathname === '/service-worker.js') return answer(serviceWorker, { 'content-type': 'text/javascript' })
		if (pathname === '/speculate') {
			const targets = JSON.parse(to) as Record<string, string>[]
			// With the referrer policy of the other pages, Chromium would not follow redirects speculatively.
			const policy = { 'referrer-policy': 'strict-origin-when-cross-origin' }
			return answer(speculation(targets), { 'speculation-rules': rulesHeader(targets), ...policy })
		}
		if (pathname === '/rules') return answer(to, { 'content-type': 'application/speculationrules+json' })
		if (pathname === '/refresh') return answer('', { refresh: `0;url=${to}` })
		if (pathname === '/preload') return answer('x', { link: `<${to}>; rel=preload; as=image, <${to}>; rel=prefetch` })
		if (pathname === '/report') {
			return answer('<img src="/x">', { 'content-security-policy': `default-src 'none'; report-uri ${to}` })
		}
		answer('', {}, 404)
	})
}

const serviceWorker = `
self.onmessage = ({ data, ports: [port] }) =>
	fetch(data, { mode: 'no-cors' }).then(({ type }) => port.postMessage(type), ({ name }) => port.postMessage(name))
`

const actions = ['prefetch', 'prerender']
/** Ways to make a browser load an address speculatively, such as `script prefetch`. */
export const speculations = ['script', 'header', 'anchor', 'redirect'].flatMap((by) =>
	actions.map((action) => `${by} ${action}`),
)

/** A page with all of them. Each of `targets` has an address for each of `speculations`. */
function speculation(targets: Record<string, string>[]): string {
	const rules = actions.map((action) => [
		action,
		[
			{
				urls: targets.flatMap((by) => [
					by[`script ${action}`],
					`/go?to=${encodeURIComponent(by[`redirect ${action}`] ?? '')}`,
				]),
				eagerness: 'immediate',
			},
			{ where: { selector_matches: `.${action}` }, eagerness: 'immediate' },
		],
	])
	const anchors = targets.flatMap((by) =>
		actions.map((action) => `<a class="${action}" href="${by[`anchor ${action}`]}">x</a>`),
	)
	const text = JSON.stringify(Object.fromEntries(rules))
	return `<!doctype html><body>${anchors.join('\n')}<script type="speculationrules">${text}</script>`
}

function rulesHeader(targets: Record<string, string>[]): string {
	const rules = Object.fromEntries(
		actions.map((action) => [action, [{ urls: targets.map((by) => by[`header ${action}`]), eagerness: 'immediate' }]]),
	)
	return `"/rules?to=${encodeURIComponent(JSON.stringify(rules))}"`
}

/** On one port of 127.0.0.1 and ::1, since a browser may take either for `localhost`. */
async function listen(
	t: Test,
	handle: RequestListener,
	upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void,
): Promise<number> {
	const serve = async (host: string, port: number): Promise<http.Server> => {
		const server = http.createServer(handle)
		if (upgrade) server.on('upgrade', upgrade)
		await once(server.listen(port, host), 'listening')
		return server
	}
	for (;;) {
		const first = await serve('127.0.0.1', 0)
		const { port } = first.address() as AddressInfo
		const second = await serve('::1', port).catch(unlessInUse)
		if (!second) {
			first.close()
			continue
		}
		for (const server of [first, second])
			t.teardown(() => {
				server.closeAllConnections()
				server.close()
			})
		return port
	}
}

/** The port that is free at one address may be in use at the other. */
function unlessInUse(error: NodeJS.ErrnoException): undefined {
	if (error.code !== 'EADDRINUSE') throw error
}
