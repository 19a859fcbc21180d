/** Rules of the token service that need too much time, or too many tokens, for a test over HTTP. */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import type { Test } from 'tap'
import { openLog } from '../../../core/log/log.ts'
import type { NewEvent } from '../../../core/protocol.ts'
import { openMemory } from '../../support/memory-engine.ts'
import type { Op, Store } from '../../../core/store/ports.ts'
import { callersOf } from '../../../plugins/auth/callers.ts'
import { instantOf } from '../../../plugins/auth/instant.ts'
import { tokensOf } from '../../../plugins/auth/tokens.ts'
import type { Tokens } from '../../../plugins/auth/contract.ts'

const DAY_MS = 86_400_000
const forever = { scopes: ['agents:read'], expires_at: null }
const log = openLog({ level: 'silent', format: 'json' })

void t.test('refuses the 10,001st token, until old ones have expired for long enough', async (t) => {
	const { store, tokens } = service(t)
	await seed(store, 10_000, null)
	await t.rejects(tokens.create(forever), { code: 'conflict', message: /10000 tokens already/ })
	await seed(store, 1, daysAgo(91))
	t.match(await tokens.create(forever), { token: /^svc_/ })
})

void t.test('creation reads all tokens once, and again at the limit', async (t) => {
	const { store, tokens, lists } = service(t)
	await seed(store, 9_997, null)
	for (let created = 0; created < 3; created++) await tokens.create(forever)
	t.equal(lists(), 1)
	await t.rejects(tokens.create(forever), { code: 'conflict' })
	t.equal(lists(), 2)
})

void t.test('removes tokens that ended more than 90 days ago, and nothing else', async (t) => {
	const { store, tokens } = service(t)
	await seed(store, 1, daysAgo(91))
	await seed(store, 1, daysAgo(89), 1)
	await seed(store, 1, null, 2)
	t.equal((await tokens.find(seededText(0)))?.status, 'expired')
	await tokens.create(forever)
	t.strictSame(
		(await tokens.list()).map((token) => token.status),
		['expired', 'active', 'active'],
	)
	t.equal(await tokens.find(seededText(0)), undefined)
	t.equal((await tokens.find(seededText(1)))?.status, 'expired')
	t.equal((await tokens.find(seededText(2)))?.status, 'active')
})

void t.test('creates one of a hundred concurrent first tokens; the bootstrap never opens again', async (t) => {
	const { tokens } = service(t)
	t.equal(await tokens.noneYet(), true)
	const results = await Promise.allSettled(Array.from({ length: 100 }, () => tokens.create(forever, true)))
	const made = results.filter((result) => result.status === 'fulfilled')
	t.equal(made.length, 1)
	for (const result of results) if (result.status === 'rejected') t.match(result.reason, { code: 'unauthorized' })
	t.equal((await tokens.list()).length, 1)
	await tokens.revoke(made[0]?.value.id ?? '')
	t.equal(await tokens.noneYet(), false)
	await t.rejects(tokens.create(forever, true), { code: 'unauthorized' })
})

void t.test('reports each change of a token once, by its id, without its text', async (t) => {
	const { tokens, events } = service(t)
	const { id, token } = await tokens.create(forever)
	await tokens.revoke(id)
	await tokens.revoke(id)
	t.strictSame(events, [
		{ event_type: 'token.created', payload: { token_id: id, scopes: ['agents:read'], expires_at: null } },
		{ event_type: 'token.revoked', payload: { token_id: id } },
	])
	t.notOk(JSON.stringify(events).includes(token))
})

void t.test('returns the token even if its event cannot be recorded', async (t) => {
	const { tokens } = service(t, () => Promise.reject(new Error('the disk is full')))
	t.match(await tokens.create(forever), { token: /^svc_[A-Za-z0-9_-]{43}$/ })
})

void t.test('checks whether the caller of an open stream is still valid', async (t) => {
	const { tokens } = service(t)
	const mode = (auth_mode: 'loopback' | 'token') =>
		callersOf(
			{ auth_mode, allowed_hosts: [], cors_origins: [], oidc: null, host: '127.0.0.1' },
			tokens,
			'',
			() => {},
			() => [],
		)
	const [loopback, token] = [mode('loopback'), mode('token')]
	const local = { token_id: null, scope: ['*'], actor: { kind: 'local' as const }, local: true }
	t.equal(await loopback.check(local), true)
	t.equal(await token.check(local), false, 'loopback was switched off')

	const { id, scopes } = await tokens.create(forever)
	const caller = { token_id: id, scope: scopes, actor: { kind: 'token' as const, id }, local: true }
	t.equal(await token.check(caller), true)
	await tokens.revoke(id)
	t.equal(await loopback.check(caller), false, 'revoked, local or not')
	t.equal(await loopback.check({ ...caller, token_id: 'none' }), false)

	const brief = await tokens.create({ scopes, expires_at: new Date(Date.now() - 1).toISOString() })
	t.equal(await loopback.check({ ...caller, token_id: brief.id }), false, 'expired')
})

void t.test('authenticates a WebSocket upgrade, and checks its scopes', async (t) => {
	const { tokens } = service(t)
	const callers = callersOf(
		{ auth_mode: 'token', allowed_hosts: [], cors_origins: [], oidc: null, host: '127.0.0.1' },
		tokens,
		'',
		() => {},
		() => [],
	)
	const { id, token } = await tokens.create(forever)
	const ask = (headers: Record<string, string>, ...scopes: string[]) =>
		callers.authenticate(upgrade({ host: 'localhost', ...headers }), scopes.length > 0 ? { scopes } : {})
	const authorization = `Bearer ${token}`
	const known = { token_id: id, scope: ['agents:read'], actor: { kind: 'token', id } }
	t.strictSame(await ask({ authorization }), { ...known, local: true })
	t.strictSame(await ask({ authorization, origin: 'https://evil.example' }, 'runs:write', 'agents:read'), {
		...known,
		local: false,
	})
	await t.rejects(ask({ authorization }, 'runs:write'), { code: 'forbidden', message: /scope runs:write/ })
	await t.rejects(ask({}), { code: 'unauthorized' })
	await t.rejects(callers.authenticate(upgrade({})), { code: 'invalid_request', message: /one Host/ })
})

void t.test('accepts ISO 8601 in its common forms, by default in UTC, and nothing else', async (t) => {
	const good: Record<string, string> = {
		'2030-01-31': '2030-01-31T00:00:00.000Z',
		'2030-01-31T12:00': '2030-01-31T12:00:00.000Z',
		'2030-01-31T12:00:30': '2030-01-31T12:00:30.000Z',
		'2030-01-31T12:00:30.123456': '2030-01-31T12:00:30.123Z',
		'2030-01-31T12:00:30Z': '2030-01-31T12:00:30.000Z',
		'2030-01-31t12:00:30z': '2030-01-31T12:00:30.000Z',
		'2030-01-31T12:00:30+02:00': '2030-01-31T10:00:30.000Z',
		'2030-01-31T12:00:30-0530': '2030-01-31T17:30:30.000Z',
		'2030-01-31T12:00:30+02': '2030-01-31T10:00:30.000Z',
		'2028-02-29': '2028-02-29T00:00:00.000Z',
	}
	for (const [text, instant] of Object.entries(good)) t.equal(instantOf(text), instant, text)
	const bad = [
		'',
		'tomorrow',
		'2030',
		'2030-02-30',
		'2030-13-01',
		'2030-W05',
		'2030-01-31T25:00',
		'2030-01-31 12:00',
		'2030-01-31T12:00:00+25:00',
	]
	for (const text of bad) t.equal(instantOf(text), undefined, text)
})

/** `lists`: how often the service has read all tokens. */
function service(t: Test, emit?: () => Promise<void>) {
	const engine = openMemory()
	t.teardown(() => engine[Symbol.asyncDispose]())
	const events: NewEvent[] = []
	const record = async (event: NewEvent): Promise<void> => void events.push(event)
	let lists = 0
	const { store } = engine
	const counting: Store = {
		...store,
		list(prefix, options) {
			lists++
			return store.list(prefix, options)
		},
	}
	const tokens: Tokens = tokensOf({ store: counting, emit: emit ?? record, log })
	return { store, tokens, events, lists: () => lists }
}

function seededText(number: number): string {
	return `svc_${String(number).padStart(43, '0')}`
}

/** Stores records as the service does. `from`: the number of the first. */
async function seed(store: Store, count: number, expires_at: string | null, from = 0): Promise<void> {
	let ops: Op[] = []
	for (let number = from; number < from + count; number++) {
		const hash = createHash('sha256').update(seededText(number)).digest('hex')
		const id = String(number).padStart(5, '0')
		const record = { id, hash, scopes: ['agents:read'], expires_at, created_at: daysAgo(100), revoked_at: null }
		ops.push({ key: ['auth', 'token', id], value: record }, { key: ['auth', 'hash', hash], value: { id } })
		if (ops.length === 100 || number === from + count - 1) {
			await store.commit('auth', ops)
			ops = []
		}
	}
}

function daysAgo(days: number): string {
	return new Date(Date.now() - days * DAY_MS).toISOString()
}

/** The parts of a request that authentication reads. */
function upgrade(headers: Record<string, string>): IncomingMessage {
	return {
		headers,
		rawHeaders: Object.entries(headers).flat(),
		url: '/api/agents/ada/chat/ws',
		socket: { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' },
	} as unknown as IncomingMessage
}
