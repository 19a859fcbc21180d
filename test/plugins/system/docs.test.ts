/** GET /docs: the reference for people, which needs nothing but the gateway itself. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createContext, runInContext } from 'node:vm'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { refused } from '../../support/refused.ts'

const assets = {
	'/docs/swagger-ui.css': 'text/css; charset=utf-8',
	'/docs/swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
	'/docs/favicon.png': 'image/png',
	'/docs/reference.js': 'text/javascript; charset=utf-8',
}

void t.test('the page', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'off' } })
	t.teardown(() => gateway.stop())
	const page = await gateway.request<string>('GET', '/docs')
	t.equal(page.status, 200, 'it needs no token')
	t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')

	await t.test('loads parts of the gateway only, and each is there', async (t) => {
		const loaded = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '')
		t.strictSame(new Set(loaded), new Set([...Object.keys(assets), '/v1/openapi.json']))
		t.notMatch(page.body, /<script(?![^>]*\ssrc=)|\son\w+=|style=|<style/, 'nothing stands in the page itself')
		for (const [path, type] of Object.entries(assets)) {
			const { status, headers } = await gateway.request('GET', path)
			t.equal(status, 200, path)
			t.equal(headers.get('content-type'), type)
			t.equal(headers.get('x-content-type-options'), 'nosniff')
		}
		const css = (await gateway.request<string>('GET', '/docs/swagger-ui.css')).body
		t.notMatch(css, /@import|@font-face/)
		for (const [, address = ''] of css.matchAll(/url\(["']?([^"')]{0,20})/g)) t.match(address, /^data:/)
	})

	await t.test('is held to that by its policy', (t) => {
		const policy = Object.fromEntries(
			(page.headers.get('content-security-policy') ?? '').split('; ').map((one) => {
				const [name = '', ...sources] = one.split(' ')
				return [name, sources.join(' ')]
			}),
		)
		t.strictSame(policy, {
			'default-src': "'none'",
			'script-src': "'self'",
			'style-src': "'self'",
			'img-src': "'self' data:",
			'connect-src': "'self'",
			'base-uri': "'none'",
			'form-action': "'none'",
			'frame-ancestors': "'none'",
		})
		t.equal(page.headers.get('x-frame-options'), 'DENY')
		t.end()
	})

	await t.test('is sent again only where it has changed', async (t) => {
		for (const path of [...Object.keys(assets), '/v1/openapi.json', '/v1/openapi.yaml']) {
			const { headers } = await gateway.request('GET', path)
			t.equal(headers.get('cache-control'), 'no-cache', path)
			const again = await gateway.request('GET', path, { headers: { 'if-none-match': headers.get('etag') ?? '' } })
			t.equal(again.status, 304, path)
			t.equal(again.body, '')
			const other = await gateway.request('GET', path, { headers: { 'if-none-match': '"another"' } })
			t.equal(other.status, 200)
		}
	})

	await t.test('is compressed once, not for each request', async (t) => {
		for (const path of ['/docs/swagger-ui-bundle.js', '/docs/swagger-ui.css', '/v1/openapi.json', '/v1/openapi.yaml']) {
			const read = async (encoding: string) => {
				const response = await fetch(gateway.url + path, { headers: { 'accept-encoding': encoding } })
				return { headers: response.headers, body: await response.text() }
			}
			const plain = await read('identity')
			t.equal(plain.headers.get('content-encoding'), null)
			const length = Number(plain.headers.get('content-length'))
			for (const encoding of ['gzip', 'deflate', 'br, deflate;q=0.5']) {
				const { headers, body } = await read(encoding)
				t.ok(encoding.includes(headers.get('content-encoding') ?? 'none'), `${path} by ${encoding}`)
				t.equal(headers.get('vary'), 'accept-encoding')
				// The length of what is compressed for one request is not known when its answer begins.
				const shorter = Number(headers.get('content-length'))
				t.ok(shorter > 0 && shorter < length / 2, `${shorter} of ${length} bytes`)
				t.strictSame(body, plain.body)
			}
		}
	})

	await t.test('has no other parts, whatever is asked for', async (t) => {
		for (const name of ['index.html', 'page.ts', '__proto__', 'constructor', '..%2Findex.ts', 'swagger-ui.js.map'])
			refused(t, await gateway.request('GET', `/docs/${name}`), { status: 404, code: 'not_found' })
		refused(t, await gateway.request('GET', `/docs/${'x'.repeat(65)}`), { status: 400, code: 'invalid_request' })
	})
})

void t.test('what is tried on the page counts as local, and what another page tries does not', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const body = { name: 'ada' }
	// As Firefox and Chrome send it for `fetch` from the page.
	const fromPage = { origin: gateway.url, referer: `${gateway.url}/docs`, 'sec-fetch-site': 'same-origin' }
	const made = await gateway.request('POST', '/v1/agents', { headers: fromPage, body })
	t.equal(made.status, 201)
	const { origin: _, ...reading } = fromPage
	t.equal((await gateway.request('GET', '/v1/agents/ada', { headers: reading })).status, 200)
	const foreign = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
	refused(t, await gateway.request('POST', '/v1/agents', { headers: foreign, body }), {
		status: 401,
		code: 'unauthorized',
	})
})

/** As much of Swagger UI as is asked. */
interface System {
	getConfigs(): Record<string, unknown>
	specSelectors: {
		specResolvedSubtree(path: string[]): unknown
		allowTryItOutFor(path: string, method: string): boolean
	}
}

void t.test('Swagger UI runs as the page starts it, without eval, and asks for nothing but the document', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const read = async (path: string): Promise<string> => (await gateway.request<string>('GET', path)).body
	const asked: string[] = []
	const failed: unknown[] = []
	const page = browserOf(gateway.url, (address) => {
		asked.push(address)
		return fetch(new URL(address, gateway.url))
	})
	// It reports what went wrong inside of it there.
	page.console = { ...console, error: (...what: unknown[]) => failed.push(...what) }
	const onFailure = (error: unknown): void => void failed.push(error)
	process.on('unhandledRejection', onFailure)
	t.teardown(() => process.off('unhandledRejection', onFailure))
	const context = createContext(page, { codeGeneration: { strings: false, wasm: false } })
	runInContext(await read('/docs/swagger-ui-bundle.js'), context)
	runInContext(
		'const start = SwaggerUIBundle; SwaggerUIBundle = Object.assign((settings) => { ui = start(settings) }, start)',
		context,
	)
	runInContext(await read('/docs/reference.js'), context)
	const { getConfigs, specSelectors } = (page.ui as { getSystem(): System }).getSystem()
	const schemes = ['components', 'securitySchemes']
	// It resolves references a moment after it read the document.
	while (failed.length === 0 && specSelectors.specResolvedSubtree(schemes) === undefined) await nextTurn()

	t.strictSame(asked, ['/v1/openapi.json'])
	t.strictSame(failed, [])
	t.match(getConfigs(), {
		validatorUrl: null,
		persistAuthorization: false,
		tryItOutEnabled: true,
		queryConfigEnabled: false,
	})
	const mayTry = specSelectors.allowTryItOutFor
	t.equal(mayTry('/v1/agents', 'post'), true)
	t.equal(mayTry('/v1/agents/{name}', 'delete'), true, 'one without a body in its answer')
	t.equal(mayTry('/v1/events/stream', 'get'), false, 'a stream never ends')
	t.equal(mayTry('/api/agents/{name}/chat', 'post'), false, 'it is at another address')
})

/** As much of a browser as Swagger UI needs to work without being shown. */
function browserOf(url: string, get: (address: string) => Promise<Response>): Record<string, unknown> {
	class Element {}
	const location = new URL('/docs', url)
	const element = (): object => ({ style: {}, setAttribute: () => {}, appendChild: () => {} })
	const document = {
		nodeType: 9,
		location,
		baseURI: location.href,
		cookie: '',
		createElement: element,
		documentElement: element(),
		addEventListener: () => {},
		querySelector: () => null,
		implementation: { createHTMLDocument: () => document },
	}
	// What Node has of a browser. Not MessageChannel, whose ports would keep the process alive.
	const names =
		'AbortController Blob Event EventTarget File FormData Headers Request Response TextDecoder TextEncoder URL URLSearchParams atob btoa clearTimeout console crypto performance queueMicrotask setImmediate setTimeout structuredClone'
	const page: Record<string, unknown> = {
		...Object.fromEntries(names.split(' ').map((name) => [name, globalThis[name as keyof typeof globalThis]])),
		Element,
		HTMLElement: Element,
		Node: Element,
		document,
		location,
		navigator: { userAgent: '', platform: '' },
		addEventListener: () => {},
		fetch: (request: string | { url: string }) => get(typeof request === 'string' ? request : request.url),
	}
	return Object.assign(page, { window: page, self: page })
}
