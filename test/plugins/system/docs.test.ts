/** GET /docs: the reference for people, which loads nothing from other servers. */
import { createContext, runInContext } from 'node:vm'
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { assertError } from '../../support/error-response.ts'
import { eventually } from '../../support/wait.ts'

const assets = {
	'/docs/swagger-ui.css': 'text/css; charset=utf-8',
	'/docs/swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
	'/docs/favicon.png': 'image/png',
	'/docs/reference.js': 'text/javascript; charset=utf-8',
}

void t.test('the page of GET /docs', async (t) => {
	const gateway = await startGateway({ env: { SVC_LOOPBACK: 'off' } })
	t.teardown(() => gateway.stop())
	const page = await gateway.request<string>('GET', '/docs')
	t.equal(page.status, 200, 'the page needs no token')
	t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')

	await t.test('loads only files that the gateway serves', async (t) => {
		const loaded = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '')
		t.strictSame(new Set(loaded), new Set([...Object.keys(assets), '/v1/openapi.json']))
		t.notMatch(page.body, /<script(?![^>]*\ssrc=)|\son\w+=|style=|<style/, 'the page has no inline scripts and styles')
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

	await t.test('has a content security policy that allows nothing else', (t) => {
		const policy = Object.fromEntries(
			(page.headers.get('content-security-policy') ?? '').split('; ').map((directive) => {
				const [name = '', ...sources] = directive.split(' ')
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

	await t.test('is sent again only after a change', async (t) => {
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
				// A response that is compressed while it is sent has no length.
				const compressed = Number(headers.get('content-length'))
				t.ok(compressed > 0 && compressed < length / 2, `${compressed} of ${length} bytes`)
				t.strictSame(body, plain.body)
			}
		}
	})

	await t.test('has no other files', async (t) => {
		for (const name of ['index.html', 'page.ts', '__proto__', 'constructor', '..%2Findex.ts', 'swagger-ui.js.map'])
			assertError(t, await gateway.request('GET', `/docs/${name}`), { status: 404, code: 'not_found' })
		assertError(t, await gateway.request('GET', `/docs/${'x'.repeat(65)}`), { status: 400, code: 'invalid_request' })
	})
})

void t.test('requests from the page count as local, requests from other pages do not', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const body = { name: 'ada' }
	// Headers of Firefox and Chrome for `fetch` from the page.
	const fromPage = { origin: gateway.url, referer: `${gateway.url}/docs`, 'sec-fetch-site': 'same-origin' }
	const made = await gateway.request('POST', '/v1/agents', { headers: fromPage, body })
	t.equal(made.status, 201)
	const { origin: _, ...reading } = fromPage
	t.equal((await gateway.request('GET', '/v1/agents/ada', { headers: reading })).status, 200)
	const foreign = { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }
	assertError(t, await gateway.request('POST', '/v1/agents', { headers: foreign, body }), {
		status: 401,
		code: 'unauthorized',
	})
})

/** The parts of Swagger UI that the test uses. */
interface System {
	getConfigs(): Record<string, unknown>
	specSelectors: {
		specResolvedSubtree(path: string[]): unknown
		allowTryItOutFor(path: string, method: string): boolean
	}
}

void t.test('Swagger UI starts as in the page, without eval, and requests only the document', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const read = async (path: string): Promise<string> => (await gateway.request<string>('GET', path)).body
	const requested: string[] = []
	const failed: unknown[] = []
	const page = browserOf(gateway.url, (address) => {
		requested.push(address)
		return fetch(new URL(address, gateway.url))
	})
	// Swagger UI reports its errors there.
	page.console = { ...console, error: (...errors: unknown[]) => failed.push(...errors) }
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
	// Swagger UI resolves references some time after it has read the document.
	await eventually(() => failed.length > 0 || specSelectors.specResolvedSubtree(schemes) !== undefined)

	t.strictSame(requested, ['/v1/openapi.json'])
	t.strictSame(failed, [])
	t.match(getConfigs(), {
		validatorUrl: null,
		persistAuthorization: false,
		tryItOutEnabled: true,
		queryConfigEnabled: false,
	})
	const mayTry = specSelectors.allowTryItOutFor
	t.equal(mayTry('/v1/agents', 'post'), true)
	t.equal(mayTry('/v1/agents/{name}', 'delete'), true, 'an operation whose response has no body')
	t.equal(mayTry('/v1/events/stream', 'get'), false, 'a stream never ends')
	t.equal(mayTry('/api/agents/{name}/chat', 'post'), false, 'the chat API has another address')
})

/** The globals of a browser that Swagger UI needs to run without rendering. */
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
	// Globals that Node has in common with a browser, except MessageChannel, whose ports would keep the process alive.
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
