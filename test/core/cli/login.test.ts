/** `svc login`: one token per gateway address, in a file that only its owner can read. */
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { exitCodes } from '../../../core/cli/contract.ts'
import { addToken } from '../../support/add.ts'
import { svcFor } from '../../support/cli.ts'
import { startGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

void t.test('login stores a valid token for an address, and every command uses it at that address', async (t) => {
	const gateway = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => gateway.stop())
	const { url, home } = gateway
	const svc = svcFor({ home })
	const file = join(home, 'login.json')
	const { token } = await addToken(gateway, ['*'])
	const limited = (await gateway.request('POST', '/v1/auth/tokens', { body: { scopes: ['events:read'] }, token })).body

	const denied = await svc(['agents', 'list'])
	t.equal(denied.code, exitCodes.denied)
	t.match(denied.stderr, 'svc login')
	t.equal((await svc(['login', token])).code, exitCodes.usage, 'a token as an argument')
	t.equal((await svc(['login'], { input: 'two words\n' })).code, exitCodes.usage)
	t.equal((await svc(['login'], { input: `svc_${'x'.repeat(43)}\n` })).code, exitCodes.denied)
	t.notOk(existsSync(file), 'a refused token is not stored')

	t.equal((await svc(['login'], { input: `${limited.token}\n` })).code, 0, 'a valid token with any scopes')
	t.match(await svc(['agents', 'list']), { code: exitCodes.denied, stderr: /agents:read/ })
	const login = await svc(['login'], { input: `${token}\n` })
	t.equal(login.code, 0)
	t.match(login.stdout, `logged in at ${url}`)
	t.notMatch(login.stdout + login.stderr, token)
	t.equal(statSync(file).mode & 0o777, 0o600)
	t.strictSame(JSON.parse(readFileSync(file, 'utf8')), { [url]: token })
	t.equal((await svc(['agents', 'list'])).code, 0)
	t.equal((await svc(['agents', 'list'], { env: { SVC_URL: `${url}/` } })).code, 0, 'the same address')
	t.equal((await svc(['doctor', '--only', 'token.expiry'])).code, 0)
	t.equal(
		(await svc(['agents', 'list'], { env: { SVC_TOKEN: 'svc_wrong' } })).code,
		exitCodes.denied,
		'SVC_TOKEN takes precedence',
	)

	chmodSync(file, 0o644)
	t.match(await svc(['agents', 'list']), { code: exitCodes.usage, stderr: /others can read .*chmod 600/ })
	chmodSync(file, 0o600)
	t.equal((await svc(['logout'])).code, 0)
	t.notOk(existsSync(file))
	t.equal((await svc(['agents', 'list'])).code, exitCodes.denied)
	t.equal((await svc(['logout'])).code, exitCodes.not_found)
})

void t.test('a SVC_TOKEN that is invalid in a header is refused and not shown', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const svc = svcFor({ home: gateway.home })
	for (const SVC_TOKEN of ['svc_first\nsvc_second', 'svc_€']) {
		const refused = await svc(['agents', 'list'], { env: { SVC_TOKEN } })
		t.match(refused, { code: exitCodes.usage, stderr: /SVC_TOKEN does not contain a token/ })
		t.notMatch(refused.stderr, 'svc_first')
	}
	const { token } = await addToken(gateway, ['*'])
	t.equal((await svc(['agents', 'list'], { env: { SVC_TOKEN: `${token}\r\n` } })).code, 0, 'as read from a file')
})

void t.test('a token is sent only to its address, and only to a gateway', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const received: (string | undefined)[] = []
	const other = createServer((request, response) => {
		received.push(request.headers.authorization)
		response.setHeader('content-type', 'application/json').end('{}')
	})
	const { url, stop } = await listenOnLoopback(other)
	t.teardown(stop)
	const elsewhere = { SVC_URL: url }
	const svc = svcFor(gateway)
	const { token } = await addToken(gateway, ['*'])
	const here = svcFor({ home: gateway.home })
	t.equal((await here(['login'], { input: token })).code, 0)
	await here(['agents', 'list'], { env: elsewhere })
	t.equal((await here(['login'], { input: token, env: elsewhere })).code, exitCodes.unavailable)
	t.ok(received.length >= 2)
	t.ok(received.every((token) => token === undefined))
	t.strictSame(Object.keys(JSON.parse(readFileSync(join(gateway.home, 'login.json'), 'utf8'))), [gateway.url])
	t.equal((await svc(['logout'])).code, 0)
})
