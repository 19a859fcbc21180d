/** Sign-in to the console with a certified identity provider, in a real browser, and attacks on it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import t from 'tap'
import { startGateway } from '../support/gateway.ts'
import type { TestGateway } from '../support/gateway.ts'
import { browse, consoleClient, startProtectedServer } from '../support/oauth.ts'
import { eventually } from '../support/wait.ts'
import { noBrowser, startBrowser } from './chromium.ts'

const CALLBACK = '/v1/auth/callback'
const SECRET = 'the secret of the client'
let groups: string[] = ['operators']

const provider = await startProtectedServer(t, {
	configuration: {
		clients: [consoleClient(`http://127.0.0.1${CALLBACK}`, SECRET)],
		claims: { openid: ['sub', 'groups'], email: ['email'] },
		conformIdTokenClaims: false,
		findAccount: (_ctx, id) => ({
			accountId: id,
			claims: () => ({ sub: id, groups, email: `${id}@example.com` }),
		}),
	},
})
const gateway = await startGateway({
	config: `
auth_mode: token
auth:
  oidc:
    issuer: ${provider.issuer}
    client_id: console
    client_secret: \${CLIENT_SECRET}
    rules:
      - when: {groups: operators}
        scopes: ['*']
`,
	env: { CLIENT_SECRET: SECRET },
})
t.teardown(() => gateway.stop())

/** Begins a sign-in as the console does. Returns the address of the provider, and the cookie. */
async function begin(at = gateway): Promise<{ url: string; cookie: string }> {
	const reply = await at.request('POST', '/v1/auth/login')
	if (reply.status !== 200) throw new Error(JSON.stringify(reply.body))
	return { url: reply.body.url as string, cookie: reply.headers.getSetCookie()[0]?.split(';')[0] ?? '' }
}

const returnTo = (address: string, cookie = '', at = gateway) =>
	at.request('GET', address.slice(at.url.length), { headers: { cookie } })
/** Signs in at the provider. Returns the address to which it redirects. */
const signInAt = (url: string, at = gateway): Promise<string> => browse(url, `${at.url}${CALLBACK}`)

/** Returns the cookie of a new session. */
async function signedIn(at = gateway): Promise<string> {
	const { url, cookie } = await begin(at)
	const reply = await returnTo(await signInAt(url, at), cookie, at)
	if (reply.status !== 200) throw new Error(reply.body)
	return reply.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

void t.test('a person signs in, and out', { skip: noBrowser }, async (t) => {
	const browser = await startBrowser([])
	t.teardown(() => browser.close())
	const context: BrowserContext = await browser.newContext({ baseURL: gateway.url })
	const page: Page = await context.newPage()
	const addresses: string[] = []
	page.on('request', (request) => addresses.push(request.url()))
	await page.goto('/#/agents')
	await page.getByRole('button', { name: /^Sign in with 127\.0\.0\.1/ }).click()
	await page.getByRole('button', { name: 'Sign out' }).waitFor()
	await page.getByRole('heading', { level: 1, name: 'Home' }).waitFor()
	await page.goto('/#/agents')
	await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor()
	t.equal(await page.locator('.problem').count(), 0)

	const cookies = await context.cookies()
	const session = cookies.find(({ name }) => name === 'svc-session')
	t.match(session, { httpOnly: true, sameSite: 'Strict' })
	t.equal(await page.evaluate('document.cookie'), '')
	for (const address of addresses) t.notOk(address.includes(session?.value ?? 'none'))
	t.strictSame(
		await page.evaluate(
			'fetch("/v1/auth/me").then((answer) => answer.json()).then(({ kind, label }) => [kind, label])',
		),
		['oidc', 'grace@example.com'],
	)

	await page.getByRole('button', { name: 'Sign out' }).click()
	await page.getByRole('button', { name: /^Sign in with/ }).waitFor()
	const cookie = `svc-session=${session?.value}`
	const stolen = await gateway.request('GET', '/v1/agents', { headers: { cookie, 'sec-fetch-site': 'same-origin' } })
	t.equal(stolen.status, 401, 'its cookie is no longer valid')
})

void t.test('a session is valid only for pages of the gateway, and ends', async (t) => {
	const cookie = await signedIn()
	const as = (headers: Record<string, string>, method = 'GET', path = '/v1/agents') =>
		gateway.request(method, path, { headers: { cookie, ...headers } })
	t.equal((await as({ 'sec-fetch-site': 'same-origin' })).status, 200)
	t.equal((await as({ origin: gateway.url })).status, 200)
	for (const headers of [
		{},
		{ 'sec-fetch-site': 'same-site' },
		{ 'sec-fetch-site': 'cross-site', origin: gateway.url },
		{ 'sec-fetch-site': 'none' },
		{ origin: 'https://evil.example' },
		{ origin: 'null' },
	] as Record<string, string>[]) {
		t.equal((await as(headers)).status, 401, JSON.stringify(headers))
		t.equal((await as(headers, 'POST', '/v1/agents')).status, 401)
		t.equal((await as(headers, 'POST', '/v1/auth/logout')).status, 403)
	}
	t.equal((await as({ 'sec-fetch-site': 'same-origin', cookie: 'svc-session=x' })).status, 401)
	const store = async (headers: Record<string, string>): Promise<string | undefined> => {
		const { checks } = (await as(headers, 'GET', '/v1/health')).body as { checks: { name: string; message: string }[] }
		return checks.find(({ name }) => name === 'store')?.message
	}
	t.match(await store({ 'sec-fetch-site': 'same-origin' }), /MiB in use/, 'the complete health report, as with a token')
	t.equal(await store({}), 'ok')
	t.equal(await store({ 'sec-fetch-site': 'same-origin', cookie: 'svc-session=x' }), 'ok')
	const real = Date.now
	t.teardown(() => (Date.now = real))
	Date.now = () => real() + 12 * 3_600_000
	t.equal((await as({ 'sec-fetch-site': 'same-origin' })).status, 401, 'after 12 hours')
	Date.now = real

	const signedOut = await as({ 'sec-fetch-site': 'same-origin' }, 'POST', '/v1/auth/logout')
	t.equal(signedOut.status, 204)
	t.match(signedOut.headers.getSetCookie()[0], /^svc-session=; .*Max-Age=0/)
	t.equal((await as({ 'sec-fetch-site': 'same-origin' })).status, 401)
})

void t.test('a forged, reused or foreign sign-in is refused, and no response or event has its code', async (t) => {
	const { url, cookie } = await begin()
	const back = await signInAt(url)
	const modified = (change: (address: URL) => void): string => {
		const address = new URL(back)
		change(address)
		return address.href
	}
	const other = await begin()
	const refused: Record<string, [string, string]> = {
		'another browser': [back, ''],
		'the cookie of another sign-in': [back, other.cookie],
		'a forged state': [modified(({ searchParams }) => searchParams.set('state', 'x'.repeat(43))), cookie],
		'no state': [modified(({ searchParams }) => searchParams.delete('state')), cookie],
		'an injected code': [modified(({ searchParams }) => searchParams.set('code', 'x'.repeat(43))), cookie],
		'another issuer': [modified(({ searchParams }) => searchParams.set('iss', 'https://evil.example')), cookie],
		'an error': [
			`${gateway.url}${CALLBACK}?error=access_denied&state=${new URL(back).searchParams.get('state')}`,
			cookie,
		],
	}
	for (const [what, [address, sent]] of Object.entries(refused)) {
		const reply = await returnTo(address, sent)
		t.equal(reply.status, 403, what)
		t.notMatch(String(reply.body), new URL(back).searchParams.get('code') ?? 'none')
		t.notOk(reply.headers.getSetCookie().some((one) => one.startsWith('svc-session=')))
	}
	const done = await returnTo(back, cookie)
	t.equal(done.status, 200)
	t.match(done.body, /http-equiv="refresh" content="0;url=\/"/)
	t.equal((await returnTo(back, cookie)).status, 403, 'a second time')

	groups = ['strangers']
	t.teardown(() => (groups = ['operators']))
	const stranger = await begin()
	const reply = await returnTo(await signInAt(stranger.url), stranger.cookie)
	t.equal(reply.status, 403)
	t.match(reply.body, /no rule of auth\.oidc/)

	const operator = await operatorHeaders()
	const { events } = (
		await gateway.request('GET', '/v1/audit?event_type=auth.*,security.violation&limit=500', { headers: operator })
	).body
	const types = (events as { event_type: string; payload: { reason?: string; actor?: object } }[]).map(
		({ event_type, payload }) => payload.reason ?? event_type,
	)
	t.ok(types.includes('login_refused') && types.includes('auth.signed_in'))
	t.match(events[0].payload.actor, { kind: 'oidc', id: 'grace', label: 'grace@example.com' })
	t.notMatch(JSON.stringify(events), new URL(back).searchParams.get('code') ?? 'none')
})

/** The headers of a page of an operator who has signed in. */
async function operatorHeaders(): Promise<Record<string, string>> {
	groups = ['operators']
	return { cookie: await signedIn(), 'sec-fetch-site': 'same-origin' }
}

void t.test('open streams end with the session', async (t) => {
	const headers = await operatorHeaders()
	const response = await fetch(`${gateway.url}/v1/events/stream`, { headers })
	t.equal(response.status, 200)
	await gateway.request('POST', '/v1/auth/logout', { headers })
	const reader = response.body?.getReader()
	await eventually(async () => (await reader?.read().catch(() => ({ done: true })))?.done === true)
	t.pass('the stream ended')
})

void t.test('without https, sign-in requires a gateway on this machine', async (t) => {
	const remote: TestGateway = await startGateway({
		config: `server: {public_url: 'http://agents.example.com'}\nauth: {oidc: {issuer: '${provider.issuer}', client_id: console, rules: [{when: {a: b}, scopes: ['*']}]}}\n`,
	})
	t.teardown(() => remote.stop())
	const reply = await remote.request('POST', '/v1/auth/login')
	t.equal(reply.status, 409)
	t.match(reply.body.message, /https/)
	t.equal((await remote.request('GET', '/v1/agents', { headers: { cookie: 'svc-session=x' } })).status, 200)
	const none = await startGateway()
	t.teardown(() => none.stop())
	t.equal((await none.request('GET', '/v1/auth/login')).status, 404)
})

void t.test('a session of a former identity provider is not valid', async (t) => {
	const configOf = (issuer: string): string =>
		`auth_mode: token\nauth: {oidc: {issuer: '${issuer}', client_id: console, client_secret: '${SECRET}', rules: [{when: {groups: operators}, scopes: ['*']}]}}\n`
	const own = await startGateway({ config: configOf(provider.issuer) })
	t.teardown(() => own.stop())
	groups = ['operators']
	const headers = { cookie: await signedIn(own), 'sec-fetch-site': 'same-origin' }
	const status = async (): Promise<number> => (await own.request('GET', '/v1/auth/tokens', { headers })).status
	t.equal(await status(), 200)
	const file = join(own.home, 'config/gateway.yaml')
	writeFileSync(file, configOf('https://login.example.com'))
	await own.running.gateway.reload()
	t.equal(await status(), 401, 'the rules apply to claims of another provider')
	writeFileSync(file, configOf(provider.issuer))
	await own.running.gateway.reload()
	t.equal(await status(), 200)
})
