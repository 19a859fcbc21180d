/** Hints of svc: commands in place of routes, likely mistakes, and next steps. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { builtInFiles } from '../../../core/cli/command-table.ts'
import { exitCodes } from '../../../core/cli/contract.ts'
import { withCommand } from '../../../core/cli/hints.ts'
import { Fault } from '../../../core/errors.ts'
import { buildProgram } from '../../../core/cli/program.ts'
import { svcFor } from '../../support/cli.ts'
import type { CliResult } from '../../support/cli.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway } from '../../support/gateway.ts'

const gateway = await startGateway({
	config: 'providers: {local: {kind: offline}}\nplugins: {kept: {enabled: false, size: 1}}\n',
	files: Object.fromEntries(
		['notes', 'kept'].map((name) => [`plugins/${name}/index.js`, `export default { name: '${name}' }`]),
	),
})
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
/** Finds the gateway by its home. */
const atHome = svcFor({ home: gateway.home })
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })

void t.test('messages name commands in place of routes', async (t) => {
	const errors = async (...argv: string[]): Promise<string> => (await svc(argv)).stderr
	t.match(await errors('agents', 'show', 'bob'), 'there is no agent "bob"; "svc agents create NAME" creates one')
	t.match(await errors('agents', 'create', 'ada'), 'choose another name; "svc agents update ada" changes it')
	t.match(await errors('grants', 'add', 'ada', 'KEY'), 'there is no secret "KEY"; "svc vault set NAME" stores one')
	t.match(await errors('grants', 'revoke', 'x', '-y'), '"svc grants list" lists them')
	t.equal((await svc(['webhooks', 'add', 'ada', 'hook'])).code, 0)
	t.match(await errors('webhooks', 'add', 'ada', 'hook'), '"svc webhooks rotate ada hook" gives it a new token')
	const failed = await errors('run', 'ada', '/tool vault.read {"name":"KEY"}')
	t.match(failed, /an operator can add one with svc grants add/)
	t.match(await errors('agents', 'show', 'bob', '--json'), '\\"svc agents create NAME\\"')
})

void t.test('the error for a plugin that is off differs from that for one that does not exist', async (t) => {
	for (const [name, key] of [
		['notes', 'plugins.notes'],
		['kept', 'plugins.kept.enabled'],
		['mcp-server', 'plugins.mcp-server'],
	] as const) {
		const { code, stderr } = await svc(['plugins', name])
		t.equal(code, exitCodes.not_found)
		t.match(stderr, `the plugin "${name}" is not switched on; to switch it on: svc config set ${key} true\n`)
	}
	for (const name of ['other', '../plugins/notes', '.'])
		t.match((await svc(['plugins', name])).stderr, `there is no plugin "${name}"`)
})

void t.test('an error has its hint as data in a header, and the same message for HTTP clients', async (t) => {
	const { body, headers } = await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
	t.match(body.message, /already; choose another name; PATCH \/v1\/agents\/ada changes it$/)
	t.strictSame(JSON.parse(headers.get('x-hint') ?? ''), {
		route: 'PATCH /v1/agents/{name}',
		params: { name: 'ada' },
		request: 'PATCH /v1/agents/ada',
	})
	t.equal((await gateway.request('POST', '/v1/agents', { body: {} })).headers.get('x-hint'), null)
	const strange = new Fault('not_found', 'x', { hint: { route: 'GET /v1/{id}', params: { id: 'é\n' }, does: 'x' } })
	t.match(strange.headers['x-hint'], /^[\x20-\x7e]+$/)
	t.match(JSON.parse(strange.headers['x-hint'] ?? ''), { params: { id: 'é\n' } })
})

void t.test('only requests with a command are replaced, and only plain words are inserted', async (t) => {
	const route = 'PATCH /v1/agents/{name}'
	const hinted = (name: string): Promise<string> => {
		const request = `PATCH /v1/agents/${name}`
		return withCommand(`no; ${request} changes it`, JSON.stringify({ route, params: { name }, request }))
	}
	t.equal(await hinted('ada'), 'no; "svc agents update ada" changes it')
	for (const strange of ['-y', '$(id)', 'a b', ''])
		t.equal(await hinted(strange), 'no; "svc agents update NAME" changes it', strange)
	const request = 'GET /v1/models'
	for (const header of [
		JSON.stringify({ route: request, request }),
		JSON.stringify({ route, request: 'PATCH /v1/agents/ada' }),
		JSON.stringify({ route, request, params: 'x' }).replace(request, 'elsewhere'),
		'{"route": 1}',
		'not JSON',
		'null',
		null,
	])
		t.equal(await withCommand('no; GET /v1/models lists them', header), 'no; GET /v1/models lists them', String(header))
})

void t.test('hints name routes and commands that exist', async (t) => {
	const { body } = await gateway.request('GET', '/v1/openapi.json')
	const nowhere = { write: () => true } as never
	const { program } = await buildProgram([], { stdout: nowhere, stderr: nowhere, cli: () => ({}) as never, all: true })
	const hints = (await builtInFiles()).flatMap(({ hints = {} }) => Object.entries(hints))
	t.ok(hints.length > 10)
	for (const [route, text] of hints) {
		const [method = '', path = ''] = route.split(' ')
		t.ok(body.paths[path]?.[method.toLowerCase()], route)
		const [svc, noun, verb, ...given] = text.split(' ')
		t.equal(svc, 'svc')
		const command = program.commands.find((one) => one.name() === noun)?.commands.find((one) => one.name() === verb)
		const required = command?.registeredArguments.filter((one) => one.required).length ?? 0
		t.ok(command && given.length >= required && given.length <= command.registeredArguments.length, text)
	}
})

void t.test('a likely mistake in the config of an agent causes a warning, and is stored', async (t) => {
	const changed = await atHome([
		'agents',
		'update',
		'ada',
		'--set',
		'temprature=0.2',
		'provider=locl',
		'fallback=["x"]',
		'tools={"deny": ["memory.stor"]}',
	])
	t.equal(changed.code, 0)
	t.match(changed.stderr, 'config.tools.deny.0 matches no tool that the agent has now')
	t.match(changed.stderr, 'config.temprature is stored but not used by the gateway; did you mean "temperature"?')
	t.match(changed.stderr, 'gateway.yaml has no provider "locl", so runs fail; did you mean "local"?')
	t.match(changed.stderr, 'gateway.yaml has no provider "x"')
	t.match((await gateway.request('GET', '/v1/agents/ada')).body.config, { temprature: 0.2, provider: 'locl' })
	const right = ['temprature=', 'fallback=', 'provider=local', 'tools=', 'limits.steps=4']
	const corrected = await atHome(['agents', 'update', 'ada', '--set', ...right])
	t.strictSame([corrected.code, corrected.stderr], [0, ''])
	const remote = await svc(['agents', 'create', 'bea', '--set', 'provider=theirs', 'modle=x'])
	t.notMatch(remote.stderr, 'theirs', 'svc cannot read the settings of a gateway elsewhere')
	t.match(remote.stderr, 'did you mean "model"?')
})

void t.test('if no gateway answers, the error names the home', async (t) => {
	const home = testFolder(t)
	// No program listens at this port.
	mkdirSync(join(home, 'run'))
	writeFileSync(join(home, 'run/gateway.json'), JSON.stringify({ url: 'http://127.0.0.1:2' }))
	const { code, stderr } = await svcFor({ home })(['agents'])
	t.equal(code, exitCodes.unavailable)
	t.match(stderr, `or SVC_HOME to its home folder (now ${home})`)
	const named = await svcFor({ home, url: 'http://127.0.0.1:2' })(['agents'])
	t.notMatch(named.stderr, 'SVC_HOME', 'SVC_URL is set')
})

void t.test('with SVC_HOME set, no gateway of another home is used', async (t) => {
	const home = testFolder(t)
	for (const command of ['agents', 'status']) {
		const { code, stdout, stderr } = await svcFor({ home })([command])
		t.equal(code, exitCodes.unavailable)
		t.equal(stdout, '')
		t.match(stderr, `no gateway runs with the home ${home}; start one with "svc start", or set SVC_HOME`)
	}
	mkdirSync(join(home, 'run'))
	writeFileSync(join(home, 'run/gateway.json'), JSON.stringify({ url: gateway.url }))
	t.match((await svcFor({ home })(['agents'])).stdout, 'ada', 'once a gateway of the home runs')
})

void t.test('status reports a missing or invalid token', async (t) => {
	const closed = await startGateway({ config: 'auth_mode: token\n' })
	t.teardown(() => closed.stop())
	const output = async (token?: string): Promise<string> =>
		(await svcFor({ home: closed.home, url: closed.url, ...(token && { token }) })(['status'])).stdout
	t.match(await output(), 'Agents: this gateway needs a token (svc login, or SVC_TOKEN).')
	t.match(await output('svc_of_nobody'), 'Agents: the token in SVC_TOKEN is not valid here.')
})

void t.test('a compaction with nothing to merge does not offer to undo it', async (t) => {
	await svc(['memory', 'add', 'ada', 'The office cat is called Biscotto.'])
	const { code, stdout, stderr } = await svc(['memory', 'compact', 'ada'])
	t.strictSame([code, stdout], [0, 'Nothing to merge: ada has 1 memory as before.\n'])
	t.notMatch(stderr, 'undo')
})

void t.test('a backup is restored by its id', async (t) => {
	const { id } = (await svc(['backup', 'create', '--json'])).json()
	const target = join(gateway.home, '..', `${gateway.home.split('/').at(-1)}-restored`)
	t.teardown(() => rmSync(target, { recursive: true, force: true }))
	const { code, json } = await atHome(['restore', id, '--home', target, '--json'])
	t.equal(code, 0)
	t.match(json(), { home: target, id })
	t.match(
		(await atHome(['restore', '20300131T120000123Z', '--home', target])).stderr,
		/there is no .*20300131T120000123Z/,
	)
})

void t.test('a change reports a new home, and a refused change states what to do first', async (t) => {
	const folder = testFolder(t)
	const home = join(folder, 'new')
	const own = svcFor({ home, url: gateway.url })
	const config = (...argv: string[]): Promise<CliResult> => own(['config', ...argv], { cwd: folder })
	t.match((await config('set', 'server.port', '8080')).stderr, `Created a new home at ${home}.`)
	t.notMatch((await config('set', 'server.port', '8081')).stderr, 'Created')

	const init = (model: string, name = 'ollama'): Promise<CliResult> =>
		own(['init', '-y', '--kind', 'openai', '--name', name, '--base-url', 'http://127.0.0.1:2/v1', '--model', model], {
			cwd: folder,
		})
	const added = await init('one')
	t.match(added.stdout, /^Added provider ollama to .*gateway\.yaml\n[^]*Next: svc start/)
	t.match((await init('two')).stdout, /^Changed provider ollama in /)

	const kept = await config('unset', 'providers.ollama')
	t.equal(kept.code, exitCodes.config)
	t.match(
		kept.stderr,
		'Nothing was changed. First: svc config unset default_provider. Then run the same command again.',
	)
	t.equal((await config('unset', 'default_provider')).code, 0)
	const second = ['set', 'providers.second', '{kind: offline}']
	const refused = await config(...second)
	t.equal(refused.code, exitCodes.config)
	t.match(
		refused.stderr,
		'Nothing was changed. First: svc config set default_provider ollama. Then run the same command again.',
	)
	t.equal((await config('set', 'default_provider', 'ollama')).code, 0)
	t.equal((await config(...second)).code, 0)
	t.match((await config('unset', 'providers.ollama')).stderr, 'First: svc config set default_provider second.')
	t.match((await config('set', 'server.port', 'x')).stderr, /Nothing was changed\.\n$/)
})

void t.test('init does not offer to start a running gateway', async (t) => {
	const { stdout } = await atHome(['init', '--kind', 'offline', '--no-wait'])
	t.match(stdout, /^Kept [^]*\nNext:\n/)
	t.notMatch(stdout, 'svc start')
})

void t.test('the doctor reports a missing gateway.yaml as such, not as valid', async (t) => {
	const home = testFolder(t)
	const { stdout } = await svcFor({ home })(['doctor', '--only', 'config.valid'])
	t.match(stdout, /config\.valid +there is no .*gateway\.yaml; the defaults apply/)
})
