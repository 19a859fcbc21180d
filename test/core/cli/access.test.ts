/** svc vault, grants and tokens: permissions, and secrets that are never shown. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { svcFor } from '../../support/cli.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

const VALUE = 'ghp_0123456789abcdef'

void t.test('a secret is read from standard input and never shown', async (t) => {
	const stored = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'ci'], { input: `${VALUE}\n` })
	t.equal(stored.code, 0)
	t.match(stored.stdout, /svc grants add AGENT GITHUB_TOKEN/)
	const listed = await svc(['vault', 'list', '--json'])
	t.match(listed.json(), [{ name: 'GITHUB_TOKEN', policy_label: 'ci' }])
	const [{ id }] = listed.json()
	t.notOk(`${stored.stdout}${stored.stderr}${listed.stdout}`.includes(VALUE))

	const changed = await svc(['vault', 'set', 'GITHUB_TOKEN', '--json'], { input: 'another value, no line end' })
	t.match(changed.json(), { id, name: 'GITHUB_TOKEN', status: 'changed' })
	await svc(['grants', 'add', 'ada', 'GITHUB_TOKEN', '--reveal'])
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('/tool vault.read {"name":"GITHUB_TOKEN"}')
	t.match((await ada.read(run_id)).answer, /redacted:GITHUB_TOKEN/, 'the agent reads it')
	const same = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'ci', '--json'], { input: 'a third value here' })
	t.equal(same.code, 0, 'the same label is accepted')
	t.match(same.json(), { id, policy_label: 'ci', status: 'changed' })
	const labelled = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'other'], { input: 'x'.repeat(20) })
	t.equal(labelled.code, 5)
	t.match(labelled.stderr, /has the label "ci", and a label cannot be changed/)
	t.equal((await svc(['vault', 'set', 'PLAIN'], { input: 'y'.repeat(20) })).code, 0)
	const added = await svc(['vault', 'set', 'PLAIN', '--label', 'ci'], { input: 'z'.repeat(20) })
	t.match(added, { code: 5, stderr: /has no label/ })
	await svc(['vault', 'delete', 'PLAIN', '--yes'])
	const short = await svc(['vault', 'set', 'PIN'], { input: '123\n' })
	t.match(short, { code: 0, stderr: /is not redacted/ })
})

void t.test('a secret is read from a hidden prompt', async (t) => {
	const typed = await svc(['vault', 'set', 'TYPED'], { person: [['Value of TYPED', 'typed by hand\r']] })
	t.equal(typed.code, 0)
	t.notOk(typed.stderr.includes('typed by hand'), 'it is not echoed')
	t.equal((await svc(['vault', 'set', 'TYPED'], { person: [['Value of TYPED', '\u0003']] })).code, 130, 'Ctrl-C')
})

void t.test('a secret as an argument is refused', async (t) => {
	for (const argv of [
		['vault', 'set', 'NEW', VALUE],
		['vault', 'set', 'NEW', '--value', VALUE],
		['vault', 'set', 'NEW', `--value=${VALUE}`],
		['vault', 'set', 'NEW', '--password', VALUE],
		['channels', 'add', 'telegram', VALUE],
		['channels', 'add', 'telegram', '--token', VALUE],
		['channels', 'add', 'telegram', '--name', 'BOT', VALUE],
	]) {
		const { code, stderr } = await svc(argv, { input: 'another value' })
		t.equal(code, 2, argv.join(' '))
		t.match(stderr, /[Nn]ever pass a secret as an argument.*the shell keeps them in its history/s)
		t.notOk(stderr.includes(VALUE))
	}
	t.match(await svc(['vault', 'set', `NEW=${VALUE}`], { input: 'x' }), { code: 2, stderr: /only the name/ })
	for (const option of ['--secret', '--name'])
		t.match(await svc(['channels', 'add', 'telegram', option, '123:abc']), {
			code: 2,
			stderr: /never the token itself/,
		})
	t.match(await svc(['vault', 'set', 'NEW'], { input: '\n' }), { code: 2, stderr: /empty/ })
	t.notMatch((await svc(['vault', 'list'])).stdout, /NEW|TELEGRAM/)
	const { stdout } = await svc(['vault', 'set', '--help'])
	t.notMatch(stdout, /--value|--password/, 'the help lists no such option')
})

void t.test('grants are added, listed and revoked by name', async (t) => {
	await svc(['vault', 'set', 'OTHER'], { input: 'another secret value' })
	t.match(await svc(['grants', 'add', 'ada', 'OTHER']), { code: 0, stdout: /a handle/ })
	t.equal((await svc(['grants', 'add', 'ada', 'OTHER'])).code, 5)
	t.equal((await svc(['grants', 'add', 'nobody', 'OTHER'])).code, 4)
	const grants = (await svc(['grants', 'list', 'ada', '--json'])).json()
	t.match(grants, [
		{ agent_id: 'ada', secret: 'GITHUB_TOKEN', reveal: true },
		{ agent_id: 'ada', secret: 'OTHER', reveal: false },
	])
	t.match((await svc(['grants'])).stdout, /ada +GITHUB_TOKEN +the value +\S{36}/)

	t.match(await svc(['grants', 'revoke', 'ada', 'OTHER']), { code: 2, stderr: /--yes/ })
	const refused = await svc(['grants', 'revoke', 'ada', 'OTHER'], {
		person: [['Revoke the grant of OTHER to ada?', 'n']],
	})
	t.match(refused, { code: 1, stderr: /Nothing was changed/ })
	t.equal((await svc(['grants', 'list', '--json'])).json().length, 2)
	t.equal(
		(await svc(['grants', 'revoke', 'ada', 'OTHER'], { person: [['Revoke the grant of OTHER to ada?', 'y']] })).code,
		0,
	)
	const missing = await svc(['grants', 'revoke', 'ada', 'OTHER', '-y'])
	t.match(missing, { code: 4, stderr: /no grant of ada for "OTHER"; there are: GITHUB_TOKEN/ })
	t.equal((await svc(['grants', 'revoke', grants[0].grant_id, '--yes'])).code, 0)
	t.match((await svc(['grants'])).stdout, 'No grants yet')
})

void t.test('a grant can be limited to hosts', async (t) => {
	const hosts = ['--host', 'api.example.com', '--host', 'localhost:8443']
	const added = await svc(['grants', 'add', 'ada', 'OTHER', ...hosts])
	t.match(added, { code: 0, stdout: /is sent to api\.example\.com, localhost:8443 only/ })
	t.match((await svc(['grants', 'list', '--json'])).json(), [{ hosts: ['api.example.com', 'localhost:8443'] }])
	t.match((await svc(['grants'])).stdout, /ada +OTHER +a handle .*api\.example\.com, localhost:8443/)
	t.equal((await svc(['grants', 'revoke', 'ada', 'OTHER', '--yes'])).code, 0)
	t.match(await svc(['grants', 'add', 'ada', 'OTHER', '--host', 'https://a.example']), { code: 2, stderr: /one host/ })
	t.match(await svc(['grants', 'add', 'ada', 'OTHER', '--reveal', ...hosts]), { code: 2, stderr: /with reveal/ })
})

void t.test('deleting a secret and rotating the key need a confirmation', async (t) => {
	t.match(await svc(['vault', 'delete', 'OTHER']), { code: 2, stderr: /--yes/ })
	t.match((await svc(['vault', 'delete', 'OTHER', '--yes', '--json'])).json(), { secret: 'OTHER', status: 'deleted' })
	t.equal((await svc(['vault', 'delete', 'OTHER', '--yes'])).code, 4)
	t.match(await svc(['vault', 'rotate-key']), { code: 2, stderr: /Earlier backups need a copy.*--yes/ })
	t.match(await svc(['vault', 'rotate-key', '-y']), { code: 0, stdout: /master key of 3 secrets/ })
})

void t.test('a token is shown once, and svc uses it', async (t) => {
	const created = await svc(['tokens', 'create', '--scope', 'agents:read,vault:write', '--ttl', '30d', '--json'])
	const { id, token, scopes, expires_at } = created.json()
	t.match(created.stderr, /not shown again/)
	t.strictSame(scopes, ['agents:read', 'vault:write'])
	const days = (Date.parse(expires_at) - Date.now()) / 86_400_000
	t.ok(days > 29.9 && days <= 30, String(days))
	const env = { SVC_TOKEN: token }
	t.equal((await svc(['plugins'], { env })).code, 0)
	t.match(await svc(['tokens', 'list'], { env }), { code: 3, stderr: /tokens:admin/ })
	t.equal((await svc(['vault', 'set', 'OF_WRITER'], { env, input: 'who writes need not list' })).code, 0)
	t.equal((await svc(['vault', 'set', 'OF_WRITER'], { env, input: 'nor to change a value' })).code, 0)
	t.equal((await svc(['grants', 'add', 'ada', 'OF_WRITER'], { env })).code, 0)
	t.match((await svc(['grants', 'list', '--json'], { env })).json(), [{ agent_id: 'ada', secret: undefined }])

	const until = await svc(['tokens', 'create', '--scope', '*', '--ttl', '2099-01-31T12:00:00Z'])
	t.match(until.stdout, /token: +svc_\S+\n(.*\n)*expires: 2099-01-31 \d\d:\d\d:00/)
	t.match((await svc(['tokens', 'create', '--scope', '*', 'events:read'])).stdout, /expires: never/)
	for (const [argv, stderr] of [
		[['--scope', 'nonsense'], /must be one of agents:read/],
		[['--scope', '*', '--ttl', 'soon'], /30d/],
		[['--scope', '*', '--ttl', '0d'], /greater than 0/],
		[['--scope', '*', '--ttl', '2001-01-01'], /future/],
		[[], /--scope/],
	] as const)
		t.match(await svc(['tokens', 'create', ...argv]), { code: 2, stderr }, argv.join(' '))

	const limited = await svc(['tokens', 'create', '--scope', '*', '--agent', 'ada,team-*', 'bob', '--label', 'tickets'])
	t.match(limited.stdout, /agents: +ada team-\* bob\n/)
	const listed = await svc(['tokens', '--json'])
	const list = listed.json()
	t.match(list.at(-1), { agents: ['ada', 'team-*', 'bob'], label: 'tickets' })
	t.equal(list.length, 4)
	t.notOk(listed.stdout.includes(token))
	t.match(await svc(['tokens', 'revoke', id]), { code: 2, stderr: /--yes/ })
	t.equal((await svc(['tokens', 'revoke', id, '--yes'])).code, 0)
	t.match(await svc(['plugins'], { env }), { code: 3, stderr: /SVC_TOKEN/ })
	t.match((await svc(['tokens'])).stdout, new RegExp(`${id} +revoked`))
})
