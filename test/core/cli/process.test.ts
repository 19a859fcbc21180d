/** `svc` as a separate process: signals, pipes, terminals and exit codes. */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, linkSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { exitCodes } from '../../../core/cli/contract.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway } from '../../support/gateway.ts'
import { startManualModel } from '../../support/manual-model.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { withoutUserHome } from '../../support/process.ts'
import { openWatch } from '../../support/wait.ts'

const svcFile = fileURLToPath(new URL('../../../core/svc.mjs', import.meta.url))

const model = await startManualModel()
t.teardown(() => model.stop())
const gateway = await startGateway({
	config: `
providers:
  held: {kind: openai, base_url: "${model.url}", model: held}
  offline: {kind: offline}
default_provider: offline
`,
})
t.teardown(() => gateway.stop())
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
await gateway.request('POST', '/v1/agents', { body: { name: 'held', config: { provider: 'held' } } })

interface Started {
	child: ChildProcess
	/** Settles once standard output or error shows the text. */
	shows(text: string | RegExp): Promise<unknown>
	stdout(): string
	stderr(): string
	/** Settles with the exit code. */
	ended: Promise<number | null>
}

interface StartOptions {
	node?: string
	cwd?: string
	env?: NodeJS.ProcessEnv
	/** Runs it on a pseudo-terminal, by script(1). */
	terminal?: boolean
}

function start(
	t: Test,
	argv: string[],
	{ node = process.execPath, cwd = gateway.home, env = {}, terminal = false }: StartOptions = {},
): Started {
	const words = [node, svcFile, ...argv]
	const quoted = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ')
	const [command = '', ...args] = terminal
		? ['script', '-qec', `stty cols 100 rows 30; exec ${quoted}`, '/dev/null']
		: words
	const child = spawn(command, args, {
		cwd,
		env: { PATH: process.env.PATH, HOME: gateway.home, SVC_HOME: gateway.home, TERM: 'xterm', ...env },
		stdio: ['pipe', 'pipe', 'pipe'],
	})
	t.teardown(() => child.kill('SIGKILL'))
	child.stdin?.on('error', () => {})
	let stdout = ''
	let stderr = ''
	let end: { code: number | null } | undefined
	const watch = openWatch()
	child.stdout?.on('data', (data: Buffer) => {
		stdout += data.toString()
		watch.check()
	})
	child.stderr?.on('data', (data: Buffer) => {
		stderr += data.toString()
		watch.check()
	})
	const ended = once(child, 'close').then(([code]) => {
		end = { code }
		watch.check()
		return code as number | null
	})
	return {
		child,
		shows(text) {
			const isIn = (all: string): boolean => (typeof text === 'string' ? all.includes(text) : text.test(all))
			return watch.until(
				() => {
					if ([stdout, stderr].some(isIn)) return true
					if (end) throw new Error(`it ended with ${end.code} before it showed "${text}": ${stdout}${stderr}`)
					return undefined
				},
				() => `it did not show "${text}": ${stdout}${stderr}`,
			)
		},
		stdout: () => stdout,
		stderr: () => stderr,
		ended,
	}
}

void t.test('an answer streams through a pipe, and Ctrl-C stops the run', async (t) => {
	const svc = start(t, ['run', 'held', 'slowly'])
	const call = await model.called('slowly')
	call.say('first words ')
	await svc.shows('Well, first words ')
	svc.child.kill('SIGINT')
	await call.hungUp
	t.equal(await svc.ended, exitCodes.interrupted)
	const run_id = /stopped run ([0-9a-f-]{36})/.exec(svc.stderr())?.[1]
	t.equal((await gateway.request('GET', `/v1/runs/${run_id}`)).body.status, 'stopped')
})

void t.test('without a home folder, the error states what to set', async (t) => {
	const svc = start(t, ['status'], { env: { SVC_HOME: undefined, NODE_OPTIONS: withoutUserHome } })
	t.equal(await svc.ended, exitCodes.config)
	t.match(svc.stderr(), /^svc: this user has no home folder; set SVC_HOME to a folder for the gateway\n$/)
})

void t.test('a second Ctrl-C exits at once', async (t) => {
	const cancelled = Promise.withResolvers<void>()
	// Accepts the request to cancel, and never answers it.
	const silent = createServer((request, response) => {
		response.setHeader('x-request-id', 'as-a-gateway-does')
		if (request.url?.startsWith('/v1/events/stream')) {
			response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
		} else if (request.url?.endsWith('/cancel')) cancelled.resolve()
		else response.writeHead(200, { 'content-type': 'application/json' }).end('{"run_id": "r1"}')
	})
	const { url, stop } = await listenOnLoopback(silent)
	t.teardown(stop)
	const started = once(silent, 'request')
	const svc = start(t, ['run', 'ada', 'x'], { env: { SVC_URL: url } })
	await started
	svc.child.kill('SIGINT')
	await cancelled.promise
	// One key press may send two signals, so svc ignores a second one that follows immediately.
	const pressing = setInterval(() => svc.child.kill('SIGINT'), 50)
	t.equal(await svc.ended, exitCodes.interrupted)
	clearInterval(pressing)
})

void t.test('a reader that closes the pipe ends it without an error', async (t) => {
	for (let n = 0; n < 5; n++)
		await gateway.request('POST', '/v1/agents/ada/runs', { body: { prompt: `${n} ${'x'.repeat(20_000)}` } })
	const svc = start(t, ['audit', '--all', '--json'])
	svc.child.stdout?.once('data', () => svc.child.stdout?.destroy())
	t.equal(await svc.ended, 0)
	t.equal(svc.stderr(), '')
})

void t.test('exit codes reach the shell, and another Node starts the right one', async (t) => {
	const missing = start(t, ['agents', 'show', 'nobody'])
	t.equal(await missing.ended, exitCodes.not_found)

	const folder = testFolder(t)
	const other = join(folder, 'node')
	try {
		linkSync(process.execPath, other)
	} catch {
		copyFileSync(process.execPath, other)
	}
	const stopped = start(t, ['run', 'held', 'handed over'], { node: other })
	const call = await model.called('handed over')
	stopped.child.kill('SIGINT')
	t.equal(await stopped.ended, exitCodes.interrupted, 'signals are passed on')
	await call.hungUp
})

void t.test('start runs the gateway in the foreground until SIGTERM', async (t) => {
	const folder = testFolder(t)
	mkdirSync(join(folder, 'home'))
	const env = { SVC_HOME: './home', SVC_PORT: '0', SVC_LEGACY_PORT: '0', SVC_LOG_LEVEL: 'warn' }
	const svc = start(t, ['start'], { cwd: folder, env })
	await svc.shows('The gateway listens at')
	const { url } = JSON.parse(readFileSync(join(folder, 'home/run/gateway.json'), 'utf8'))
	await svc.shows(`Or in a browser: ${url}/`)
	t.equal((await fetch(`${url}/healthz`)).status, 200)
	const busy = start(t, ['start'], { cwd: folder, env })
	t.equal(await busy.ended, exitCodes.unavailable)
	t.match(busy.stderr(), 'The gateway does not start.')
	if (existsSync('/proc/net/tcp')) {
		const other = { ...env, SVC_HOME: './other', SVC_PORT: new URL(url).port }
		const doctor = start(t, ['doctor', '--only', 'port.free'], { cwd: folder, env: other })
		t.equal(await doctor.ended, exitCodes.failed)
		t.match(doctor.stdout(), `is in use by the gateway of the home ${join(folder, 'home')} (process `)
	}
	svc.child.kill('SIGTERM')
	t.equal(await svc.ended, 0)
	t.notOk(existsSync(join(folder, 'home/run/gateway.json')))
})

void t.test('the completion script works in bash', async (t) => {
	const script = `svc() { '${process.execPath}' '${svcFile}' "$@"; }
source <(svc completion bash); COMP_WORDS=(svc run a); COMP_CWORD=2; _svc; echo "\${COMPREPLY[@]}"`
	const bash = spawn('bash', ['-c', script], {
		env: { PATH: process.env.PATH, SVC_HOME: gateway.home },
		stdio: ['ignore', 'pipe', 'inherit'],
	})
	t.equal(await text(bash.stdout), 'ada\n')
})

const hasFish = spawnSync('fish', ['--version']).status === 0
void t.test('the completion script works in fish', { skip: !hasFish && 'fish is not installed' }, async (t) => {
	const files = t.testdir({ 'backup.tar.gz': '' })
	const script = `function svc; '${process.execPath}' '${svcFile}' $argv; end
svc completion fish | source
complete -C 'svc run a'
complete -C 'svc agents cr'
complete -C 'svc restore ${files}/b'`
	const fish = spawn('fish', ['-c', script], {
		env: { PATH: process.env.PATH, HOME: files, SVC_HOME: gateway.home },
		stdio: ['ignore', 'pipe', 'inherit'],
	})
	const found = (await text(fish.stdout)).split('\n').map((line) => line.split('\t')[0])
	t.strictSame(found, ['ada', 'create', `${files}/backup.tar.gz`, ''])
})

const hasScript = spawnSync('script', ['--version']).status === 0
void t.test('on a terminal', { skip: !hasScript && 'script(1) is not installed' }, async (t) => {
	void t.test('a question is asked at the prompt', async (t) => {
		const svc = start(t, ['run', 'ada', '/tool ask {"question":"Which way?","options":["left","right"]}'], {
			terminal: true,
		})
		await svc.shows('Something else')
		svc.child.stdin?.write('\x1b[B\r')
		t.equal(await svc.ended, 0)
		t.match(svc.stdout(), 'ask answered: {"answer":"right"}')
		t.match(svc.stdout(), '\x1b[2m', 'in colours')
	})

	void t.test('the question of a sub-agent is asked, and withdrawn when the sub-agent ends', async (t) => {
		const ask = { prompt: '/tool ask {"question":"Which way?","options":["left","right"]}' }
		const svc = start(t, ['run', 'ada', `/tool subagent.spawn ${JSON.stringify(ask)}`], { terminal: true })
		await svc.shows(/a sub-agent of ada asks: Which way\?[^]*Something else/)
		svc.child.stdin?.write('\x1b[B\r')
		t.equal(await svc.ended, 0)
		t.match(svc.stdout(), /subagent\.spawn answered[^]*right/)

		const again = start(t, ['run', 'ada', `/tool subagent.spawn ${JSON.stringify(ask)}`], { terminal: true })
		await again.shows('Something else')
		const [child] = (await gateway.request('GET', '/v1/agents/ada/runs?limit=1')).body
		await gateway.request('POST', `/v1/runs/${child.run_id}/cancel`)
		t.equal(await again.ended, 0)
		t.match(again.stdout(), 'no longer asked')
	})

	void t.test('Ctrl-C at the question stops the run', async (t) => {
		const svc = start(t, ['run', 'ada', '/tool ask {"question":"Really?"}'], { terminal: true })
		await svc.shows('Really?')
		svc.child.stdin?.write('\x03')
		t.equal(await svc.ended, exitCodes.interrupted)
		t.match(svc.stdout(), 'stopped run')
		t.strictSame((await gateway.request('GET', '/v1/agents/ada/questions')).body, [])
	})

	void t.test('an answer from elsewhere withdraws the question', async (t) => {
		const svc = start(t, ['run', 'ada', '/tool ask {"question":"Anybody?"}'], { terminal: true })
		await svc.shows('Anybody?')
		const [open] = (await gateway.request('GET', '/v1/agents/ada/questions')).body
		await gateway.request('POST', `/v1/agents/ada/ask-responses/${open.question_id}`, { body: { answer: 'me' } })
		t.equal(await svc.ended, 0)
		t.match(svc.stdout(), 'answered elsewhere: me')
		t.match(svc.stdout(), 'ask answered: {"answer":"me"}')
	})

	void t.test('svc chat: Ctrl-C stops an answer, and exits at the prompt', async (t) => {
		const svc = start(t, ['chat', 'held'], { terminal: true })
		await svc.shows('> ')
		svc.child.stdin?.write('long story\r')
		const call = await model.called('long story')
		await svc.shows('Well,')
		svc.child.stdin?.write('\x03')
		await call.hungUp
		await svc.shows('(stopped)')
		svc.child.stdin?.write('/new\r')
		await svc.shows(/New session[^]*> /)
		svc.child.stdin?.write('\x03')
		t.equal(await svc.ended, 0)
	})

	void t.test('svc chat: commands work during an answer, and a half-typed line is kept', async (t) => {
		const svc = start(t, ['chat', 'held'], { terminal: true })
		await svc.shows('> ')
		svc.child.stdin?.write('endless story\r')
		const call = await model.called('endless story')
		await svc.shows('Well,')
		svc.child.stdin?.write('/stop\r')
		await call.hungUp
		await svc.shows(/the run was stopped[^]*> /)
		svc.child.stdin?.write('another story\r')
		const other = await model.called('another story')
		svc.child.stdin?.write('half ')
		await svc.shows('half ')
		other.answer('the end.')
		await svc.shows(/the end\.[^]*> /)
		svc.child.stdin?.write('a line\r')
		const last = await model.called('half a line')
		svc.child.stdin?.write('/exit\r')
		t.equal(await svc.ended, 0)
		t.ok(last.open, 'the run continues')
		last.answer('done.')
	})

	void t.test('a secret is not echoed', async (t) => {
		const svc = start(t, ['vault', 'set', 'API_KEY'], { terminal: true })
		await svc.shows('API_KEY')
		svc.child.stdin?.write('not-to-be-seen\r')
		t.equal(await svc.ended, 0)
		t.notMatch(svc.stdout(), 'not-to-be-seen')
		t.match((await gateway.request('GET', '/v1/vault/secrets')).body, [{ name: 'API_KEY' }])
	})
})
