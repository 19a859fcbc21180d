/** svc vault, grants and tokens: permissions, and secrets that are never shown. */
import t from 'tap'
import { startGateway } from '../../support/gateway.ts'
import { follow } from '../../support/runs.ts'
import { interactiveSvc } from '../../support/interactive-cli.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = interactiveSvc(gateway.url)
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

const VALUE = 'ghp_0123456789abcdef'

void t.test('a secret is read from standard input and never shown', async (t) => {
	const stored = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'ci'], { stdin: `${VALUE}\n` })
	t.equal(stored.code, 0)
	t.match(stored.out, /svc grants add AGENT GITHUB_TOKEN/)
	const { json, out } = await svc(['vault', 'list', '--json'])
	t.match(json, [{ name: 'GITHUB_TOKEN', policy_label: 'ci' }])
	t.notOk(`${stored.out}${stored.err}${out}`.includes(VALUE))

	const changed = await svc(['vault', 'set', 'GITHUB_TOKEN', '--json'], { stdin: 'another value, no line end' })
	t.match(changed.json, { id: json[0].id, name: 'GITHUB_TOKEN', status: 'changed' })
	await svc(['grants', 'add', 'ada', 'GITHUB_TOKEN', '--reveal'])
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('/tool vault.read {"name":"GITHUB_TOKEN"}')
	t.match((await ada.read(run_id)).answer, /redacted:GITHUB_TOKEN/, 'the agent reads it')
	const same = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'ci', '--json'], { stdin: 'a third value here' })
	t.match(
		same,
		{ code: 0, json: { id: json[0].id, policy_label: 'ci', status: 'changed' } },
		'the same label is accepted',
	)
	const labelled = await svc(['vault', 'set', 'GITHUB_TOKEN', '--label', 'other'], { stdin: 'x'.repeat(20) })
	t.equal(labelled.code, 5)
	t.match(labelled.err, /has the label "ci", and a label cannot be changed/)
	t.equal((await svc(['vault', 'set', 'PLAIN'], { stdin: 'y'.repeat(20) })).code, 0)
	const added = await svc(['vault', 'set', 'PLAIN', '--label', 'ci'], { stdin: 'z'.repeat(20) })
	t.match(added, { code: 5, err: /has no label/ })
	await svc(['vault', 'delete', 'PLAIN', '--yes'])
	const short = await svc(['vault', 'set', 'PIN'], { stdin: '123\n' })
	t.match(short, { code: 0, err: /is not redacted/ })
})

void t.test('a secret is read from a hidden prompt', async (t) => {
	const typed = await svc(['vault', 'set', 'TYPED'], { person: [['Value of TYPED', 'typed by hand\r']] })
	t.equal(typed.code, 0)
	t.notOk(typed.err.includes('typed by hand'), 'it is not echoed')
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
		const { code, err } = await svc(argv, { stdin: 'another value' })
		t.equal(code, 2, argv.join(' '))
		t.match(err, /[Nn]ever pass a secret as an argument.*the shell keeps them in its history/s)
		t.notOk(err.includes(VALUE))
	}
	t.match(await svc(['vault', 'set', `NEW=${VALUE}`], { stdin: 'x' }), { code: 2, err: /only the name/ })
	for (const option of ['--secret', '--name'])
		t.match(await svc(['channels', 'add', 'telegram', option, '123:abc']), { code: 2, err: /never the token itself/ })
	t.match(await svc(['vault', 'set', 'NEW'], { stdin: '\n' }), { code: 2, err: /empty/ })
	t.notMatch((await svc(['vault', 'list'])).out, /NEW|TELEGRAM/)
	const { out } = await svc(['vault', 'set', '--help'])
	t.notMatch(out, /--value|--password/, 'the help lists no such option')
})

void t.test('grants are added, listed and revoked by name', async (t) => {
	await svc(['vault', 'set', 'OTHER'], { stdin: 'another secret value' })
	t.match(await svc(['grants', 'add', 'ada', 'OTHER']), { code: 0, out: /a handle/ })
	t.equal((await svc(['grants', 'add', 'ada', 'OTHER'])).code, 5)
	t.equal((await svc(['grants', 'add', 'nobody', 'OTHER'])).code, 4)
	const { json } = await svc(['grants', 'list', 'ada', '--json'])
	t.match(json, [
		{ agent_id: 'ada', secret: 'GITHUB_TOKEN', reveal: true },
		{ agent_id: 'ada', secret: 'OTHER', reveal: false },
	])
	t.match((await svc(['grants'])).out, /ada +GITHUB_TOKEN +the value +\S{36}/)

	t.match(await svc(['grants', 'revoke', 'ada', 'OTHER']), { code: 2, err: /--yes/ })
	const refused = await svc(['grants', 'revoke', 'ada', 'OTHER'], {
		person: [['Revoke the grant of OTHER to ada?', 'n']],
	})
	t.match(refused, { code: 1, err: /Nothing was changed/ })
	t.equal((await svc(['grants', 'list', '--json'])).json.length, 2)
	t.equal(
		(await svc(['grants', 'revoke', 'ada', 'OTHER'], { person: [['Revoke the grant of OTHER to ada?', 'y']] })).code,
		0,
	)
	const missing = await svc(['grants', 'revoke', 'ada', 'OTHER', '-y'])
	t.match(missing, { code: 4, err: /no grant of ada for "OTHER"; there are: GITHUB_TOKEN/ })
	t.equal((await svc(['grants', 'revoke', json[0].grant_id, '--yes'])).code, 0)
	t.match((await svc(['grants'])).out, 'No grants yet')
})

void t.test('a grant can be limited to hosts', async (t) => {
	const hosts = ['--host', 'api.example.com', '--host', 'localhost:8443']
	const added = await svc(['grants', 'add', 'ada', 'OTHER', ...hosts])
	t.match(added, { code: 0, out: /is sent to api\.example\.com, localhost:8443 only/ })
	t.match((await svc(['grants', 'list', '--json'])).json, [{ hosts: ['api.example.com', 'localhost:8443'] }])
	t.match((await svc(['grants'])).out, /ada +OTHER +a handle .*api\.example\.com, localhost:8443/)
	t.equal((await svc(['grants', 'revoke', 'ada', 'OTHER', '--yes'])).code, 0)
	t.match(await svc(['grants', 'add', 'ada', 'OTHER', '--host', 'https://a.example']), { code: 2, err: /one host/ })
	t.match(await svc(['grants', 'add', 'ada', 'OTHER', '--reveal', ...hosts]), { code: 2, err: /with reveal/ })
})

void t.test('deleting a secret and rotating the key need a confirmation', async (t) => {
	t.match(await svc(['vault', 'delete', 'OTHER']), { code: 2, err: /--yes/ })
	t.match((await svc(['vault', 'delete', 'OTHER', '--yes', '--json'])).json, { secret: 'OTHER', status: 'deleted' })
	t.equal((await svc(['vault', 'delete', 'OTHER', '--yes'])).code, 4)
	t.match(await svc(['vault', 'rotate-key']), { code: 2, err: /Earlier backups need a copy.*--yes/ })
	t.match(await svc(['vault', 'rotate-key', '-y']), { code: 0, out: /master key of 3 secrets/ })
})

void t.test('a token is shown once, and svc uses it', async (t) => {
	const { json, err } = await svc(['tokens', 'create', '--scope', 'agents:read,vault:write', '--ttl', '30d', '--json'])
	t.match(err, /not shown again/)
	t.strictSame(json.scopes, ['agents:read', 'vault:write'])
	const days = (Date.parse(json.expires_at) - Date.now()) / 86_400_000
	t.ok(days > 29.9 && days <= 30, String(days))
	const env = { SVC_TOKEN: json.token }
	t.equal((await svc(['plugins'], { env })).code, 0)
	t.match(await svc(['tokens', 'list'], { env }), { code: 3, err: /tokens:admin/ })
	t.equal((await svc(['vault', 'set', 'OF_WRITER'], { env, stdin: 'who writes need not list' })).code, 0)
	t.equal((await svc(['vault', 'set', 'OF_WRITER'], { env, stdin: 'nor to change a value' })).code, 0)
	t.equal((await svc(['grants', 'add', 'ada', 'OF_WRITER'], { env })).code, 0)
	t.match((await svc(['grants', 'list', '--json'], { env })).json, [{ agent_id: 'ada', secret: undefined }])

	const until = await svc(['tokens', 'create', '--scope', '*', '--ttl', '2099-01-31T12:00:00Z'])
	t.match(until.out, /token: +svc_\S+\n(.*\n)*expires: 2099-01-31 \d\d:\d\d:00/)
	t.match((await svc(['tokens', 'create', '--scope', '*', 'events:read'])).out, /expires: never/)
	for (const [argv, err] of [
		[['--scope', 'nonsense'], /must be one of agents:read/],
		[['--scope', '*', '--ttl', 'soon'], /30d/],
		[['--scope', '*', '--ttl', '0d'], /greater than 0/],
		[['--scope', '*', '--ttl', '2001-01-01'], /future/],
		[[], /--scope/],
	] as const)
		t.match(await svc(['tokens', 'create', ...argv]), { code: 2, err }, argv.join(' '))

	const limited = await svc(['tokens', 'create', '--scope', '*', '--agent', 'ada,team-*', 'bob', '--label', 'tickets'])
	t.match(limited.out, /agents: +ada team-\* bob\n/)
	const { json: list, out } = await svc(['tokens', '--json'])
	t.match(list.at(-1), { agents: ['ada', 'team-*', 'bob'], label: 'tickets' })
	t.equal(list.length, 4)
	t.notOk(out.includes(json.token))
	t.match(await svc(['tokens', 'revoke', json.id]), { code: 2, err: /--yes/ })
	t.equal((await svc(['tokens', 'revoke', json.id, '--yes'])).code, 0)
	t.match(await svc(['plugins'], { env }), { code: 3, err: /SVC_TOKEN/ })
	t.match((await svc(['tokens'])).out, new RegExp(`${json.id} +revoked`))
})
