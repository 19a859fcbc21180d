import { createServer } from 'node:http'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { openApi } from '../../../core/cli/api.ts'
import { exitCodes } from '../../../core/cli/contract.ts'
import { main } from '../../../core/cli/main.ts'
import { openOutput } from '../../../core/cli/output.ts'
import { paint, styleFor } from '../../../core/cli/style.ts'
import { addToken } from '../../support/add.ts'
import { svcFor } from '../../support/cli.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { closedPort } from '../../support/free-ports.ts'

const gateway = await startGateway()
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)

void t.test('help lists every command by group, and every command has its own help', async (t) => {
	const { code, stdout } = await svc(['--help'])
	t.equal(code, 0)
	t.match(stdout, /Gateway:\n\s+init/)
	const bare = await svc([])
	t.equal(bare.stdout, stdout, 'svc without arguments prints the same')
	const names = [...stdout.matchAll(/^ {2}([a-z]+) .*/gm)].map(([, name = '']) => name)
	t.ok(names.includes('run') && names.includes('doctor'), 'all groups are listed')
	for (const name of names) {
		if (name === 'help') continue
		const own = await svc([name, '--help'])
		t.equal(own.code, 0, name)
		t.match(own.stdout, new RegExp(`^Usage: svc ${name} `))
		t.match(own.stdout, /Examples:\n {2}\S/, `${name} shows examples`)
	}
	const helped = await svc(['help', 'run'])
	t.match(helped.stdout, /^Usage: svc run /)
	t.match((await svc(['help', 'agents', 'show'])).stdout, /^Usage: svc agents show /)
	t.equal((await svc(['help'])).stdout, stdout)
})

void t.test('an unknown command or option is refused with a suggestion', async (t) => {
	for (const [argv, text] of [
		[['agnts'], /unknown command 'agnts'\n\(Did you mean agents\?\)/],
		[['agents', 'crate'], /unknown command 'crate'\n\(Did you mean create\?\)/],
		[['agnts', '--help'], /unknown command 'agnts'\n\(Did you mean agents\?\)/],
		[['help', 'agnts'], /unknown command 'agnts'\n\(Did you mean agents\?\)/],
		[['agents', 'crate', '-h'], /unknown command 'crate'\n\(Did you mean create\?\)/],
		[['help', 'agents', 'crate'], /unknown command 'crate'\n\(Did you mean create\?\)/],
		[['agents', 'list', '--jsn'], /unknown option '--jsn'\n\(Did you mean --json\?\)/],
		[['xyzzy'], /unknown command 'xyzzy'\n"svc --help" lists the commands\.$/m],
		[['vault', 'remove', 'KEY'], /unknown command 'remove'\nThere are: list, set, .*delete/],
		[['agents', 'list', '--foo'], /unknown option '--foo'\n"svc agents list --help" lists the options\.$/m],
		[['agents', 'show'], /missing required argument 'agent'\nUsage: svc agents show \[options\] <agent>$/m],
		[['backup', 'list', 'x'], /too many arguments .*\nUsage: svc backup list \[options\]$/m],
		[['tokens', 'create'], /'--scope <scope...>' not specified\n"svc tokens create --help" lists the options\.$/m],
		[['runs', 'list', 'ada', '--limit', '0'], /whole number from 1 to 10000/],
	] as const) {
		const { code, stdout, stderr } = await svc([...argv])
		t.equal(code, exitCodes.usage)
		t.equal(stdout, '')
		t.match(stderr, text)
		t.match(stderr, /^svc: /)
	}
})

void t.test('a group with a list command lists by default', async (t) => {
	const list = await svc(['agents', '--json'])
	t.strictSame([list.code, list.json()], [0, []])
	t.match((await svc(['agents', '--help'])).stdout, /Usage: svc agents \[options\] \[command\]/)
})

void t.test('errors of the gateway have exit codes and, with --json, are JSON', async (t) => {
	const missing = await svc(['agents', 'show', 'nobody'])
	t.equal(missing.code, exitCodes.not_found)
	t.match(missing.stderr, /^svc: there is no agent "nobody"/)
	const asJson = await svc(['agents', 'show', 'nobody', '--json'])
	t.strictSame([asJson.code, asJson.stdout], [exitCodes.not_found, ''])
	t.match(JSON.parse(asJson.stderr), { error: { code: 'not_found', message: /nobody/ } })
	const invalid = await svc(['agents', 'create', 'not a name'])
	t.equal(invalid.code, exitCodes.usage)
	t.equal((await svc(['agents', 'create', 'twice'])).code, 0)
	t.equal((await svc(['agents', 'create', 'twice'])).code, exitCodes.conflict)
	const denied = await svcFor({ ...gateway, token: 'svc_of_nobody' })(['agents', 'list'])
	t.equal(denied.code, exitCodes.denied)
	t.match(denied.stderr, /SVC_TOKEN/)
})

void t.test('svc sends the token, and its scopes apply', async (t) => {
	const made = await addToken(gateway, ['agents:read'])
	const reader = svcFor({ ...gateway, token: made.token })
	t.equal((await reader(['agents', 'list'])).code, 0)
	const denied = await reader(['agents', 'create', 'eve'])
	t.equal(denied.code, exitCodes.denied)
	t.match(denied.stderr, /agents:write/)
})

void t.test('svc finds the gateway by SVC_URL or the home, or explains how to start one', async (t) => {
	t.equal((await svcFor({ home: gateway.home })(['agents'])).code, 0, 'by run/gateway.json')
	const nowhere = testFolder(t)
	const url = `http://127.0.0.1:${await closedPort(t)}`
	const missing = await svcFor({ home: nowhere, url })(['agents'])
	t.equal(missing.code, exitCodes.unavailable)
	t.match(missing.stderr, `no gateway answers at ${url}; start one with "svc start"`)
	mkdirSync(join(nowhere, 'run'))
	writeFileSync(join(nowhere, 'run/gateway.json'), JSON.stringify({ url }))
	t.match((await svcFor({ home: nowhere })(['agents'])).stderr, url, 'a gateway that was killed')
	const refused = await svcFor({ home: nowhere, url: 'http://127.0.0.1:6000' })(['agents'])
	t.strictSame([refused.code, refused.stderr.includes('another server.port')], [exitCodes.usage, true])
	const wrong = await svcFor({ home: nowhere, url: 'localhost' })(['agents'])
	t.equal(wrong.code, exitCodes.usage)
})

void t.test('a server that is not a gateway is reported, and a redirect is not followed', async (t) => {
	const requested: (string | undefined)[] = []
	const server = createServer((request, response) => {
		requested.push(request.url)
		if (request.url === '/v1/agents') response.writeHead(302, { location: '/elsewhere' }).end()
		else response.writeHead(200).end('<html>')
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const other = svcFor({ home: gateway.home, url, token: 'svc_x' })
	for (const argv of [['agents'], ['plugins']]) {
		const { code, stderr } = await other(argv)
		t.equal(code, exitCodes.unavailable)
		t.match(stderr, /is not a gateway/)
	}
	t.notOk(requested.includes('/elsewhere'))
})

void t.test('a JSON server that is not a gateway is reported, and not as a bug of svc', async (t) => {
	let answer = { status: 200, body: '' }
	/** Headers that a gateway also sends. */
	let headers: Record<string, string> = {}
	const server = createServer((_request, response) => {
		response.writeHead(answer.status, { 'content-type': 'application/json', ...headers }).end(answer.body)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const other = svcFor({ home: gateway.home, url })
	const commands = ['status', 'tokens', 'channels', 'backup list', 'agents create x', 'backup create', 'run x hello']
	for (const body of ['{}', '[]', '[{}]', 'null', '"hi"', '7'])
		for (const command of commands) {
			answer = { status: 200, body }
			const { code, stdout, stderr } = await other(command.split(' '))
			t.strictSame([code, stdout], [exitCodes.unavailable, ''], `${command}: ${body}`)
			t.match(stderr, `the server at ${url} is not a gateway`, `${command}: ${body}`)
		}
	headers = { 'x-request-id': 'its-own' }
	for (const command of ['status', 'tokens', 'channels', 'backup list']) {
		answer = { status: 200, body: '{}' }
		t.equal((await other(command.split(' '))).code, exitCodes.unavailable, `${command}, with an id`)
	}
	answer = { status: 404, body: '{"message": "Not Found"}' }
	t.equal((await other(['agents', 'show', 'x'])).code, exitCodes.unavailable)
})

void t.test('status at a waiting gateway reports that no gateway works', async (t) => {
	const message = 'no gateway works on the data of the cluster at the moment, or it cannot be reached'
	const server = createServer((request, response) => {
		// Another gateway takes over after the first request.
		const isFirst = request.url === '/v1/health'
		response.writeHead(isFirst ? 503 : 200, { 'content-type': 'application/json', 'x-request-id': 'one' })
		response.end(isFirst ? JSON.stringify({ statusCode: 503, error: 'x', message, code: 'unavailable' }) : '[]')
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const { code, stdout, stderr } = await svcFor({ home: gateway.home, url })(['status'])
	t.strictSame([code, stdout], [exitCodes.unavailable, ''])
	t.match(stderr, message)
})

void t.test('a brief request to a silent server fails early, unless /healthz answers', async (t) => {
	let isAlive = false
	const server = createServer((request, response) => {
		if (!isAlive) return
		if (request.url === '/healthz') response.end('ok')
		else setTimeout(() => response.writeHead(200, { 'x-request-id': 'one' }).end('{"late": true}'), 500)
	})
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const { signal } = new AbortController()
	const api = openApi({ env: { SVC_URL: url }, home: gateway.home, signal, silent_ms: 200 })
	const ask = () => api.request('GET', '/v1/health', undefined, { brief: true })
	await t.rejects(ask(), {
		exit: 'unavailable',
		message: `the gateway at ${url} accepts connections, but does not answer; `,
	})
	isAlive = true
	t.strictSame(await ask(), { late: true })
})

void t.test('text from outside cannot control the terminal', async (t) => {
	const persona =
		'red \x1b[31mtext\x1b]0;title\x07 \u202eturned\u202c \u200bhidden \u{e0041}tag 👩‍👩‍👧 می‌خواهم ❤️\nnext\r\nline'
	await gateway.request('POST', '/v1/agents', { body: { name: 'eve', persona } })
	const { stdout } = await svc(['agents', 'show', 'eve'])
	// oxlint-disable-next-line no-control-regex -- the test looks for control characters
	t.notMatch(stdout, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b\u{e0041}]/u)
	t.match(stdout, 'red \\x1b[31mtext\\x1b]0;title\\x07 \\u{202e}turned\\u{202c} \\u{200b}hidden \\u{e0041}tag')
	t.match(stdout, '👩‍👩‍👧 می‌خواهم ❤️', 'joiners that are part of the text stay')
	t.match(stdout, /❤️\n {9}next\n {9}line/, 'line breaks stay')
	const asJson = await svc(['agents', 'show', 'eve', '--json'])
	t.equal(asJson.json().persona, persona, 'JSON is exact')
	t.notMatch(asJson.stdout, /[\x7f-\x9f\u202e\u200b\u{e0041}]/u)
})

void t.test('tables align with wide and invisible characters, and fit the terminal', async (t) => {
	const rows = [
		['東京', 1, 'short'],
		['e\u0301te\u0301', null, 'far too long for what is left of the line'],
		[styleFor({ columns: undefined }).bad('red'), 22, 'two\nlines'],
	]
	t.equal(
		paint(styleFor({ columns: 36 }).table(['city', 'n', 'text'], rows), false),
		[
			'CITY  N   TEXT',
			'東京  1   short',
			'e\u0301te\u0301   -   far too long for what is …',
			'red   22  two lines',
		].join('\n'),
	)
	t.equal(paint(styleFor({ columns: undefined }).table(['a'], []), false), '(none)')
})

void t.test('colours appear on a terminal only, and never with NO_COLOR', async (t) => {
	const onTerminal = async (env: NodeJS.ProcessEnv): Promise<string> => {
		const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 40 })
		const io = {
			stdin: Readable.from([]),
			stdout,
			stderr: new PassThrough(),
			cwd: '/',
			signal: new AbortController().signal,
		}
		await main(['plugins'], { ...io, env: { SVC_URL: gateway.url, SVC_HOME: gateway.home, ...env } })
		return String(stdout.read())
	}
	t.match(await onTerminal({}), '\x1b[2m')
	t.notMatch(await onTerminal({ NO_COLOR: '1' }), '\x1b')
	t.notMatch((await svc(['plugins'])).stdout, '\x1b')
})

void t.test('progress: a spinner on a terminal, lines elsewhere, nothing with --quiet', (t) => {
	const shown = (terminal: boolean, quiet: boolean): string => {
		const stderr = Object.assign(new PassThrough(), { isTTY: terminal, columns: 80 })
		const out = openOutput({ stdout: new PassThrough(), stderr, env: {}, json: () => false, quiet: () => quiet })
		using progress = out.progress('Copying')
		progress.update('Copying more')
		progress.done('Copied.')
		progress.done('Copied twice.')
		return String(stderr.read() ?? '')
	}
	t.equal(shown(true, false), '\r\x1b[K⠋ Copying\r\x1b[KCopied.\n')
	t.equal(shown(false, false), 'Copying …\nCopied.\n')
	t.equal(shown(true, true), '')
	t.end()
})
