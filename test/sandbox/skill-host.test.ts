/** The pool of skill hosts with real processes: the environment of programs, their failures, and the end of processes. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { Fault } from '../../core/errors.ts'
import { programLimits } from '../../sandbox/host-protocol.ts'
import type { HostCallKind } from '../../sandbox/host-protocol.ts'
import { openLog } from '../../core/log/log.ts'
import { hostCommand } from '../../plugins/skills/host-command.ts'
import { answerCalls } from '../../plugins/skills/host-calls.ts'
import { startHost } from '../../plugins/skills/host.ts'
import { openHosts } from '../../plugins/skills/hosts.ts'
import type { HostOptions, ProgramCall, ProgramHosts } from '../../plugins/skills/hosts.ts'
import { listenOnLoopback } from '../support/loopback.ts'
import { eventually } from '../support/wait.ts'

const log = openLog({ level: 'silent', format: 'json' })
const settings = {
	processes: 2,
	waiting_processes: 0,
	max_waiting: 100,
	memory_mib: 32,
	process_mib: 256,
	cpu_s: 20,
	wall_time_s: 60,
}

function open(
	t: Test,
	change: Partial<HostOptions['settings']> = {},
	options: Partial<HostOptions> = {},
): ProgramHosts {
	const hosts = openHosts({ settings: { ...settings, ...change }, log, ...options })
	t.teardown(() => hosts[Symbol.asyncDispose]())
	return hosts
}

function call(hosts: ProgramHosts, code: string, options: Partial<ProgramCall> = {}): Promise<unknown> {
	return hosts.run({
		owner: 'one',
		program: {
			code: /export default/.test(code) ? code : `export default async (args, svc) => { ${code} }`,
			language: 'javascript',
		},
		args: {},
		signal: new AbortController().signal,
		called: async (what, body) => ({ what, body }),
		logged: () => {},
		...options,
	})
}

void t.test('a program gets its arguments and svc, and returns plain data', async (t) => {
	const hosts = open(t)
	const lines: string[] = []
	const asked: unknown[] = []
	const called = async (what: HostCallKind, body: unknown): Promise<unknown> => {
		asked.push({ what, body })
		if (what === 'secret') return 'the value'
		if (what === 'fetch')
			return { status: 201, url: 'https://api.example/x', headers: { 'content-type': 'text/x' }, body: '{"a":1}' }
		throw new Fault('not_found', 'there is no such memory')
	}
	const code = `
		svc.log('begins', { with: args }, [1]); console.warn('and goes on')
		const response = await svc.fetch(new URL('/x?y=1', 'https://api.example'), { method: 'POST', body: new URLSearchParams({ q: 'a b' }) })
		const error = await svc.primitive('memory.recall', { query: 'x' }).catch((error) => error)
		return {
			args, secret: await svc.secret('KEY'), nothing: undefined, date: new Date(0),
			response: [response.status, response.ok, response.url, response.headers['content-type'], response.headers.get('Content-Type'), await response.json(), await response.text()],
			error: [error instanceof Error, error.code, error.message],
		}`
	t.strictSame(await call(hosts, code, { args: { city: 'Köln' }, called, logged: (text) => lines.push(text) }), {
		args: { city: 'Köln' },
		secret: 'the value',
		date: '1970-01-01T00:00:00.000Z',
		response: [201, true, 'https://api.example/x', 'text/x', 'text/x', { a: 1 }, '{"a":1}'],
		error: [true, 'not_found', 'there is no such memory'],
	})
	t.strictSame(lines, ['begins {"with":{"city":"Köln"}} [1]', 'and goes on'])
	t.strictSame(asked, [
		{ what: 'fetch', body: { url: 'https://api.example/x?y=1', init: { method: 'POST', body: 'q=a+b' } } },
		{ what: 'primitive', body: { name: 'memory.recall', args: { query: 'x' } } },
		{ what: 'secret', body: { name: 'KEY' } },
	])
	t.equal(await call(hosts, 'return undefined'), null)
	t.equal(await call(hosts, 'export default () => "not async"'), 'not async')
	t.equal(await call(hosts, 'const early = await Promise.resolve(5)\nexport default () => early'), 5)
	const program = {
		code: 'export default async (args: { n: number }): Promise<number> => args.n * 2',
		language: 'typescript',
	} as const
	t.equal(await call(hosts, '', { program, args: { n: 21 } }), 42)
})

void t.test('a program has exactly these globals, and reaches nothing of isolated-vm or Node.js', async (t) => {
	const hosts = open(t)
	const names = (await call(hosts, 'return Object.getOwnPropertyNames(globalThis).sort()')) as string[]
	const added =
		'TextDecoder TextEncoder URL URLSearchParams atob btoa clearTimeout console crypto queueMicrotask setTimeout structuredClone'
	const language =
		'AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean DataView Date ' +
		'DisposableStack Error EvalError Float16Array Float32Array Float64Array Function Infinity Int16Array Int32Array Int8Array ' +
		'Intl Iterator JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String ' +
		'SuppressedError Symbol SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap ' +
		'WeakSet decodeURI decodeURIComponent encodeURI encodeURIComponent escape globalThis isFinite isNaN parseFloat parseInt ' +
		'undefined unescape'
	t.strictSame(names, [...added.split(' '), ...language.split(' ')].sort())

	const walk = `
		const seen = new Set(), names = new Set(), left = [globalThis, svc, svc.fetch('x').catch(() => {}), new URL('a:'), crypto]
		while (left.length) {
			const one = left.pop()
			if ((typeof one !== 'object' && typeof one !== 'function') || one === null || seen.has(one)) continue
			seen.add(one)
			left.push(Object.getPrototypeOf(one))
			for (const key of Reflect.ownKeys(one)) {
				const { value, get, set } = Object.getOwnPropertyDescriptor(one, key)
				left.push(value, get, set)
				if (typeof value === 'function') names.add(value.name)
			}
		}
		return { size: seen.size, names: [...names] }`
	const { size, names: found } = (await call(hosts, walk)) as { size: number; names: string[] }
	t.ok(size > 500, `${size} objects were examined`)
	const forbidden = [
		'Reference',
		'ExternalCopy',
		'Isolate',
		'Context',
		'Module',
		'Callback',
		'Script',
		'NativeModule',
		'posted',
		'hostTool',
		'deliver',
		'arm',
		'process',
		'require',
	]
	t.strictSame(
		found.filter((name) => forbidden.includes(name)),
		[],
	)
})

void t.test('the globals of globals.ts behave as those of Node.js', async (t) => {
	const hosts = open(t)
	const probe = async (): Promise<unknown> => {
		const url = new URL('../c?x=1&y=%C3%A4+b#f', 'https://u:p@host.example:8080/a/b')
		url.searchParams.append('z', 'ö&=')
		url.searchParams.delete('x')
		const again = new URL(url)
		again.pathname = '/ü'
		again.search = ''
		const params = new URLSearchParams([
			['b', '2'],
			['a', '1'],
			['b', '3'],
		])
		params.set('b', '4')
		params.sort()
		const bytes = new TextEncoder().encode('aä€😀\ud800')
		const cyclic: Record<string, unknown> = {
			date: new Date(5),
			map: new Map([[1, new Set([2])]]),
			list: [1, undefined, 3],
			bytes,
		}
		cyclic.self = cyclic
		const copy = structuredClone(cyclic) as typeof cyclic & { map: Map<number, Set<number>>; date: Date }
		const order: string[] = []
		await new Promise<void>((resolve) => {
			setTimeout(
				(text: string) => {
					order.push(text)
					resolve()
				},
				20,
				'late',
			)
			setTimeout(() => order.push('soon'), 1)
			clearTimeout(setTimeout(() => order.push('never'), 2))
			queueMicrotask(() => order.push('at once'))
		})
		return {
			url: [
				url.href,
				url.origin,
				url.username,
				url.host,
				url.port,
				url.pathname,
				url.search,
				url.hash,
				url.searchParams.get('y'),
				JSON.stringify(url),
			],
			again: again.href,
			params: [params.toString(), params.size, params.getAll('b'), params.has('c'), [...params]],
			query: new URLSearchParams('?a=%zz&b=%F0%9F%98%80&c&=d+e').toString(),
			parse: [URL.canParse('nothing'), URL.parse('nothing'), URL.canParse('a:b')],
			bytes: [...bytes],
			text: new TextDecoder().decode(new Uint8Array([0x61, 0xc3, 0xa4, 0xff, 0xf0, 0x9f])),
			base64: ['', 'a', 'ab', 'abc', '\xff\0'].map((text) => [btoa(text), atob(btoa(text)) === text]),
			loose: atob(' YW Jj\n'),
			copy: [
				copy !== cyclic,
				copy.self === copy,
				copy.date.getTime(),
				copy.map.get(1)?.has(2),
				JSON.stringify(copy.list),
			],
			order,
			random: crypto.getRandomValues(new Uint16Array(4)).length,
			uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-4/.test(crypto.randomUUID()),
		}
	}
	const inside = await call(hosts, `export default ${probe.toString()}`)
	t.strictSame(inside, JSON.parse(JSON.stringify(await probe())))
})

void t.test('a failure states its line and cause', async (t) => {
	const hosts = open(t)
	const fails = async (code: string, fault: { code: string; message: string | RegExp }): Promise<void> => {
		await t.rejects(call(hosts, code), fault, code)
	}
	await fails('export default async (args) => {\n\n  return args.a.b\n}', {
		code: 'skill_failed',
		message: "TypeError: Cannot read properties of undefined (reading 'b') (line 3)",
	})
	await fails('throw new Error("no such city")', { code: 'skill_failed', message: 'no such city (line 1)' })
	const noModules = /^(ReferenceError: )?require is not defined \(a program has no modules, only svc\)/
	await fails('return require("fs")', { code: 'skill_failed', message: noModules })
	await fails('const fs = require("fs")\nexport default () => fs', { code: 'skill_failed', message: noModules })
	await fails('throw "text"', { code: 'skill_failed', message: 'text' })
	await fails('throw { message: 5 }', { code: 'skill_failed', message: 'it threw something without a message' })
	await fails('throw new Error("y".repeat(5000))', { code: 'skill_failed', message: /^y+ \(line 1\)$/ })
	await fails('return 1n', { code: 'skill_failed', message: /BigInt/ })
	await fails('const a = []; a.push(a); return a', { code: 'skill_failed', message: /circular/ })
	await fails('return new Promise(() => {})', { code: 'skill_failed', message: /never settles/ })
	await fails('null.x\nexport default () => 1', { code: 'skill_failed', message: /Cannot read properties of null/ })
	await fails('export default {}', { code: 'skill_invalid', message: /not a function/ })
	await fails('\nexport default async () => {\n  return )\n}', {
		code: 'skill_invalid',
		message: "line 3, column 10: Unexpected token ')'",
	})
})

void t.test('a check finds compile errors without running the program', async (t) => {
	const hosts = open(t)
	await hosts.check('tester', { code: 'for (;;);\nexport default () => { for (;;); }', language: 'javascript' })
	await hosts.check('tester', { code: 'export default (a: string): string => a', language: 'typescript' })
	const wrong = async (
		code: string,
		message: string | RegExp,
		language: 'javascript' | 'typescript' = 'javascript',
	): Promise<void> => {
		await t.rejects(hosts.check('tester', { code, language }), { code: 'skill_invalid', message })
	}
	await wrong('export default async () => {', /^line 1, column \d+: Unexpected end of input$/)
	await wrong('const run = 1', /no default export/)
	await wrong('import fs from "node:fs"\nexport default () => 1', 'it imports "node:fs"; a program imports nothing')
	await wrong(
		'export default () => 1\nenum A { x }',
		'line 2: enum cannot be used here: types are only removed, nothing is compiled',
		'typescript',
	)
	await wrong(
		'class A { constructor(public a: string) {} }',
		/^line 1: parameter property cannot be used here/,
		'typescript',
	)
	await wrong('\n\nconst a: = 1', /^line 3: /, 'typescript')
	await wrong(`type A = ${'['.repeat(20_000)}\nexport default () => 1`, /compiler/, 'typescript')
	await hosts.check('tester', { code: 'export default (a: string): string => a', language: 'typescript' })
})

void t.test('waiting calls are bounded, and running and waiting calls can be aborted', async (t) => {
	const hosts = open(t, { processes: 1, max_waiting: 1 })
	const running = new AbortController()
	const waiting = new AbortController()
	const started = Promise.withResolvers<AbortSignal>()
	const first = call(hosts, 'await svc.primitive("wait"); return 1', {
		signal: running.signal,
		called: (_what, _body, signal) => {
			started.resolve(signal)
			return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
		},
	})
	const inner = await started.promise
	const second = call(hosts, 'return 2', { signal: waiting.signal })
	await t.rejects(call(hosts, 'return 3'), { code: 'sandbox_busy', message: /1 calls/ })
	waiting.abort(new Fault('stopped', 'changed its mind'))
	await t.rejects(second, { code: 'stopped', message: 'changed its mind' })
	const fourth = call(hosts, 'return 4')
	running.abort(new Fault('stopped', 'enough'))
	await t.rejects(first, { code: 'stopped', message: 'enough' })
	t.ok(inner.aborted, 'the call of the program was aborted, too')
	t.equal(await fourth, 4, 'the next call has a new process')
	await t.rejects(call(hosts, 'return 5', { signal: AbortSignal.abort(new Fault('stopped', 'before it began')) }), {
		code: 'stopped',
	})
})

void t.test('calls that a program does not await are aborted when it returns', async (t) => {
	const hosts = open(t)
	let aborted = false
	const called = (_: string, __: unknown, signal: AbortSignal): Promise<unknown> =>
		new Promise((resolve) =>
			signal.addEventListener('abort', () => {
				aborted = true
				resolve('too late')
			}),
		)
	t.equal(await call(hosts, 'svc.primitive("a"); return 1', { called }), 1)
	t.ok(aborted)
})

void t.test('calls succeed when their process is replaced after orders_per_process calls', async (t) => {
	const hosts = open(t, { processes: 1 }, { orders_per_process: 2 })
	for (let n = 0; n < 7; n++) t.equal(await call(hosts, 'return args.n', { args: { n } }), n)
})

const needsProc = existsSync('/proc/self/stat') ? false : 'needs /proc'
/** The fields of /proc/PID/stat after the name: state, parent, process group … */
function statOf(pid: number): string[] {
	return readFileSync(`/proc/${pid}/stat`, 'utf8')
		.replace(/^.*\) /s, '')
		.split(' ')
}

void t.test('Ctrl-C at the terminal, which signals the process group, ends no call', { skip: needsProc }, async (t) => {
	const own = statOf(process.pid)[2]
	let groups: unknown[] = []
	const called = async (): Promise<null> => {
		const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8').trim().split(' ')
		groups = children.map((pid) => statOf(Number(pid))[2])
		return null
	}
	await call(open(t), 'return svc.primitive("a")', { called })
	t.ok(groups.length > 0)
	t.notOk(groups.includes(own))
})

void t.test('a host ends with the gateway, whatever its program does', { skip: needsProc }, async (t) => {
	const parent = spawn(
		process.execPath,
		[fileURLToPath(new URL('../fixtures/skill-host-parent.ts', import.meta.url))],
		{
			stdio: ['ignore', 'pipe', 'inherit'],
		},
	)
	const [line] = (await once(createInterface(parent.stdout), 'line')) as [string]
	const pids = JSON.parse(line) as number[]
	t.ok(pids.length > 0)
	const isRunning = (pid: number): boolean => existsSync(`/proc/${pid}`)
	t.ok(pids.every(isRunning))
	parent.kill('SIGKILL')
	await eventually(() => !pids.some(isRunning))
})

void t.test('without a free file descriptor no process starts, and the error is caught', async (t) => {
	const program = `
		import { openSync } from 'node:fs'
		import { startHost } from ${JSON.stringify(new URL('../../plugins/skills/host.ts', import.meta.url).href)}
		process.on('uncaughtException', (error) => console.log('uncaught: ' + error.message))
		console.log('ready')
		try { for (;;) openSync('/dev/null') } catch {}
		try { startHost({ file: '/bin/true', args: [], env: {}, cwd: '/', program: '' }) } catch ({ message }) { console.log(message) }`
	const node = spawn(
		'/bin/sh',
		['-c', 'ulimit -n 64; exec "$0" --input-type=module -e "$1"', process.execPath, program],
		{
			stdio: ['ignore', 'pipe', 'inherit'],
		},
	)
	const lines = await Array.fromAsync(createInterface({ input: node.stdout }))
	t.strictSame(lines, ['ready', 'the gateway has too many open files'])
})

void t.test('the process has no permissions, in case a program escapes from its isolate', async (t) => {
	let connections = 0
	const { port, stop } = await listenOnLoopback(createServer().on('connection', () => connections++))
	t.teardown(stop)
	const command = await hostCommand({ memory_mib: 8, process_mib: 256, cpu_ms: 1000 })
	const program = `
		import { Socket, connect } from 'node:net'
		import { once } from 'node:events'
		const results = {}
		const attempt = async (name, act) => {
			try { await act(); results[name] = 'done' } catch (error) { results[name] = error.code }
		}
		const fs = await import('node:fs')
		await attempt('read', () => fs.readFileSync('/etc/hostname'))
		await attempt('list', () => fs.readdirSync('/'))
		await attempt('self', () => fs.readFileSync(${JSON.stringify(fileURLToPath(import.meta.url))}))
		await attempt('write', () => fs.writeFileSync('/tmp/skill-host', ''))
		const { execFileSync } = await import('node:child_process')
		await attempt('exec', () => execFileSync('/bin/true'))
		const { Worker } = await import('node:worker_threads')
		await attempt('thread', () => new Worker('1', { eval: true }))
		await attempt('inspect', async () => (await import('node:inspector')).open(0))
		await attempt('connect', () => once(connect(${port}, '127.0.0.1'), 'connect'))
		results.env = Object.keys(process.env).sort()
		results.cwd = process.cwd()
		const pipe = new Socket({ fd: 3 })
		pipe.write(JSON.stringify({ kind: 'ready' }) + '\\n')
		pipe.write(JSON.stringify({ kind: 'done', id: 1, ok: true, value: JSON.stringify(results) }) + '\\n')
		pipe.resume()`
	const host = startHost({ ...command, program })
	const outcome = await host.work({ kind: 'check', id: 1, code: '', language: 'javascript' }, () => false)
	host.end()
	await host.gone
	t.match(outcome, { ok: true })
	const results = JSON.parse(outcome.ok ? outcome.value : '{}') as Record<string, unknown>
	const denied = 'ERR_ACCESS_DENIED'
	t.match(results, { read: denied, list: denied, self: denied, write: denied, exec: denied, thread: denied })
	t.not(results.inspect, 'done')
	t.strictSame(
		results.env,
		process.platform === 'darwin' ? results.env : ['PWD'].filter((name) => (results.env as string[]).includes(name)),
	)
	if (command.args.some((arg) => arg.includes('unshare'))) {
		t.not(results.connect, 'done')
		t.equal(connections, 0, 'the process has no network')
	}
})

void t.test('a host that sends an invalid message is ended', async (t) => {
	const command = await hostCommand({ memory_mib: 8, process_mib: 256, cpu_ms: 1000 })
	const messages: Record<string, string> = {
		'invalid JSON': '"nonsense\\n"',
		'no message': '"null\\n"',
		'an unknown message': `'{"kind":"shutdown","id":1}\\n'`,
		'an unknown code': `'{"kind":"done","id":1,"ok":false,"code":"internal","message":"x"}\\n'`,
		'a value that is not text': `'{"kind":"done","id":1,"ok":true,"value":{}}\\n'`,
		'a call without a number': `'{"kind":"call","id":1,"call":"1","what":"secret","body":"{}"}\\n'`,
		'a call of an unknown kind': `'{"kind":"call","id":1,"call":1,"what":"exec","body":"{}"}\\n'`,
		'an endless line': `'x'.repeat(2 ** 25)`,
		'nothing before its exit': `''); process.exit(3`,
	}
	for (const [what, text] of Object.entries(messages)) {
		const program = `import { Socket } from 'node:net'; const pipe = new Socket({ fd: 3 }); pipe.write(${text})`
		const host = startHost({ ...command, program })
		const outcome = await host.work({ kind: 'check', id: 1, code: '', language: 'javascript' }, () => true)
		t.match(outcome, { ok: false, code: 'sandbox_crash' }, what)
		await host.gone
		t.equal(host.alive, false)
	}
})

void t.test('the main thread enforces the limits of calls itself', async (t) => {
	const never: ProgramCall['called'] = (_, __, signal) =>
		new Promise((resolve) => signal.addEventListener('abort', () => resolve(null)))
	const ask = (call: number, body = '{}', what: HostCallKind = 'primitive') =>
		({ kind: 'call', id: 1, call, what, body }) as const
	const opened = (called: ProgramCall['called'] = never) =>
		answerCalls(1, { called, logged: () => {} }, async () => {}, log)

	const many = opened()
	for (let n = 1; n <= programLimits.calls_in_flight; n++) t.ok(many.handle(ask(n)))
	t.notOk(many.handle(ask(100)), 'too many pending calls')
	await many.end()

	const again = opened()
	t.ok(again.handle(ask(2)))
	t.notOk(again.handle(ask(2)), 'the same number twice')
	await again.end()

	const large = opened()
	t.notOk(large.handle(ask(1, 'x'.repeat(programLimits.text_length + 1))), 'too large')
	const piece = JSON.stringify('x'.repeat(programLimits.text_length - 2))
	for (let n = 1; n <= 10; n++) t.ok(large.handle(ask(n, piece)))
	t.notOk(large.handle(ask(11, '{}')), 'too large in total')
	await large.end()

	const loud = opened()
	for (let n = 0; n < programLimits.log_lines; n++) t.ok(loud.handle(ask(0, '{"text":"x"}', 'log')))
	t.notOk(loud.handle(ask(0, '{"text":"x"}', 'log')), 'too many lines')
	t.notOk(opened().handle(ask(0, '{"text":1}', 'log')), 'a line that is not text')
	t.notOk(
		opened().handle(ask(0, JSON.stringify({ text: 'x'.repeat(programLimits.log_line_length + 1) }), 'log')),
		'a line that is too long',
	)
})
