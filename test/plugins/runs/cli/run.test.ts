import { createServer, request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import t from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import { openOutput } from '../../../../core/cli/output.ts'
import { runView } from '../../../../plugins/runs/cli/run-view.ts'
import { svcFor } from '../../../support/cli.ts'
import { png } from '../../../support/files.ts'
import { startGateway } from '../../../support/gateway.ts'
import { startManualModel } from '../../../support/manual-model.ts'
import { listenOnLoopback } from '../../../support/loopback.ts'
import { startModelServer } from '../../../support/model-server.ts'
import { follow } from '../../../support/runs.ts'

const model = await startManualModel()
t.teardown(() => model.stop())
const models = await startModelServer()
t.teardown(() => models.stop())
const gateway = await startGateway({
	config: `
providers:
  mock: {kind: openai, base_url: "${models.url}", model: mock}
  wrong: {kind: openai, base_url: "${models.url}/nowhere", model: mock}
  held: {kind: openai, base_url: "${model.url}", model: held}
  single: {kind: openai, base_url: "${model.url}", model: held, max_concurrent_calls: 1}
  offline: {kind: offline}
default_provider: held
`,
})
t.teardown(() => gateway.stop())
const svc = svcFor(gateway)
await gateway.request('POST', '/v1/agents', { body: { name: 'ada' } })
await gateway.request('POST', '/v1/agents', {
	body: { name: 'mock', config: { provider: 'mock', fallback: ['held'] } },
})
await gateway.request('POST', '/v1/agents', { body: { name: 'off', config: { provider: 'offline' } } })

void t.test('standard output has only the answer, piece by piece', async (t) => {
	const half = Promise.withResolvers<void>()
	const ran = svc(['run', 'ada', 'tell', 'me'], {
		onOutput: (text) => text.includes('Well, it is ') && half.resolve(),
	})
	const call = await model.called('tell me')
	call.say('it is ')
	await half.promise // before the model has sent the rest
	call.answer('late.')
	const { code, stdout, stderr } = await ran
	t.equal(code, 0)
	t.equal(stdout, 'Well, it is late.\n')
	t.match(stderr, /tokens in, .*; run [0-9a-f-]{36}\)/)
})

void t.test('characters of several code points that are split between pieces are shown correctly', async (t) => {
	const stdout = new PassThrough()
	const out = openOutput({ stdout, stderr: new PassThrough(), env: {}, json: () => false, quiet: () => false })
	const view = await runView(out)
	const show = (event_type: string, content: string): void =>
		view.show({
			event_type,
			payload: { content },
			event_id: '',
			timestamp: '',
			agent_id: 'ada',
			run_id: 'r',
			sequence: 1,
		})
	const pieces = ['👩', '\u200d', '👩\u200d', '👧 \ud83d', '\ude00 a\r', '\nb \x1b[2J', 'می', '\u200c', 'خواهم']
	for (const piece of pieces) show('model.stream', piece)
	show('message.assistant', `${pieces.join('')}.`)
	t.equal(String(stdout.read()), '👩‍👩‍👧 😀 a\nb \\x1b[2Jمی‌خواهم.\n')
})

void t.test('tool calls are short lines on standard error', async (t) => {
	const { code, stdout, stderr } = await svc([
		'run',
		'off',
		'/tool memory.stm_write {"key":"a","value":"b"}\n/tool nothing {}',
	])
	t.equal(code, 0)
	t.match(stdout, /^memory\.stm_write answered/)
	t.match(stderr, '  → memory.stm_write {"key":"a","value":"b"}\n')
	t.match(stderr, /  ✗ nothing: there is no tool "nothing"/)
})

void t.test('a retry or a fallback during an answer is shown, and the answer starts again', async (t) => {
	const broken = { cutAfterChunks: 3, chunkSize: 8, pauseMs: 10 }
	models.on('stumble', { text: 'This is the WRONG answer, it breaks off.', ...broken }, 'All of it.')
	const retried = await svc(['run', 'mock', 'stumble'])
	t.equal(retried.code, 0)
	t.match(retried.stdout, /^This is .*\nAll of it\.\n$/)
	t.match(retried.stderr, 'the answer starts over')

	models.on('give up', { status: 500 })
	const withFallback = svc(['run', 'mock', 'give up'])
	const call = await model.called('give up')
	call.answer('another one.')
	const { code, stdout, stderr } = await withFallback
	t.equal(code, 0)
	t.equal(stdout, 'Well, another one.\n')
	t.match(stderr, '(mock failed; asking held)')
})

void t.test('a wait for a slot of the provider is shown', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'one', config: { provider: 'single' } } })
	await gateway.request('POST', '/v1/agents/one/runs', { body: { prompt: 'first', conversation: 'other' } })
	const first = await model.called('first')
	const waits = Promise.withResolvers<void>()
	const ran = svc(['run', 'one', 'second'], {
		onOutput: (text) => text.includes('(waits for other calls of single)') && waits.resolve(),
	})
	await waits.promise
	first.answer('done.')
	const second = await model.called('second')
	second.answer('done, too.')
	const { code, stdout } = await ran
	t.equal(code, 0)
	t.equal(stdout, 'Well, done, too.\n')
})

void t.test('--json writes one event per line', async (t) => {
	const { code, stdout, stderr } = await svc(['run', 'off', '--json', 'Hello'])
	const types = stdout
		.trim()
		.split('\n')
		.map((line) => (JSON.parse(line) as { event_type: string }).event_type)
	t.equal(code, 0)
	t.equal(types[0], 'run.started')
	t.ok(types.includes('model.stream') && types.includes('primitive.called'))
	t.equal(types.at(-1), 'run.completed')
	t.match(stderr, /tokens in/)
})

void t.test('--quiet shows only the answer, and - reads the prompt from standard input', async (t) => {
	const { code, stdout, stderr } = await svc(['run', 'off', '-', '--quiet'], { input: 'from afar\n' })
	t.equal(code, 0)
	t.match(stdout, /^The built-in offline provider received: from afar\n/)
	t.equal(stderr, '')
	t.equal((await svc(['run', 'off', '-'], { input: ' \n' })).code, exitCodes.usage)
	const latin1 = await svc(['run', 'off', '-'], { input: Readable.from([Buffer.from('café', 'latin1')]) })
	t.equal(latin1.code, exitCodes.usage)
	t.match(latin1.stderr, /standard input is not text in UTF-8/)
})

void t.test('--conversation sets the conversation of a run or a chat', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'guide', config: { provider: 'offline' } } })
	t.equal((await svc(['run', 'guide', '--conversation', 'trip', 'one'])).code, 0)
	t.equal((await svc(['run', 'guide', '--conversation', 'trip', '--detach', 'two'])).code, 0)
	const input = 'three\n/new\nfour\n/exit\n'
	const { code, stderr } = await svc(['chat', 'guide', '--conversation', 'trip'], { input })
	t.equal(code, 0)
	t.match(stderr, /start svc chat with another --conversation/)
	const { body } = await gateway.request('GET', '/v1/agents/guide/runs')
	t.strictSame(
		body.map((run: { conversation: string; prompt: string }) => [run.conversation, run.prompt]),
		['four', 'three', 'two', 'one'].map((prompt) => ['api:trip', prompt]),
	)
	t.match(await svc(['run', 'guide', '--conversation', 'a\nb', 'five']), {
		code: exitCodes.usage,
		stderr: /conversation/,
	})
})

void t.test('--detach only starts a run; runs follow shows active and ended runs', async (t) => {
	const started = await svc(['run', 'ada', '--detach', 'slowly'])
	const run_id = started.stdout.trim()
	const call = await model.called('slowly')
	const opened = Promise.withResolvers<void>()
	const followed = svc(['runs', 'follow', run_id], { onOutput: (text) => text.includes('nearly ') && opened.resolve() })
	// Pieces are only sent live, so the model repeats one until svc shows it.
	const repeating = setInterval(() => call.say('nearly '), 20)
	await opened.promise
	clearInterval(repeating)
	call.answer('there.')
	const { code, stdout } = await followed
	t.equal(code, 0)
	const { answer } = (await gateway.request('GET', `/v1/runs/${run_id}`)).body
	t.ok(stdout.endsWith(`${answer}\n`), 'the complete answer is shown, with the missed beginning')
	const again = await svc(['runs', 'follow', run_id])
	t.strictSame([again.code, again.stdout], [0, `${answer}\n`])
})

void t.test('the exit code of a failed or stopped run is 1', async (t) => {
	await gateway.request('POST', '/v1/agents', {
		body: { name: 'short', config: { provider: 'offline', limits: { steps: 1 } } },
	})
	const failed = await svc(['run', 'short', '/tool memory.stm_read {}'])
	t.equal(failed.code, exitCodes.failed)
	t.match(failed.stderr, /svc: the run failed: .*\(limit_steps\)/)
	t.notMatch(failed.stderr, /svc doctor/)
	await gateway.request('POST', '/v1/agents', { body: { name: 'lost', config: { provider: 'wrong' } } })
	t.match((await svc(['run', 'lost', 'Hello'])).stderr, /\(model_rejected\)\n.*svc doctor --only provider/)
	const ran = svc(['run', 'ada', 'stop me'])
	const call = await model.called('stop me')
	await svc(['agents', 'stop', 'ada'])
	await call.hungUp
	const stopped = await ran
	t.equal(stopped.code, exitCodes.failed)
	t.match(stopped.stderr, /svc: the run was stopped/)
	t.equal((await svc(['run', 'nobody', 'x'])).code, exitCodes.not_found)
})

void t.test('Ctrl-C stops the run before svc exits', async (t) => {
	const interrupt = new AbortController()
	const ran = svc(['run', 'ada', 'never mind'], { signal: interrupt.signal })
	const call = await model.called('never mind')
	interrupt.abort()
	const { code, stderr } = await ran
	t.equal(code, exitCodes.interrupted)
	const run_id = /stopped run ([0-9a-f-]{36})/.exec(stderr)?.[1]
	t.equal((await gateway.request('GET', `/v1/runs/${run_id}`)).body.status, 'stopped')
	await call.hungUp
})

void t.test('a question is shown with the command to answer it, and the answer continues the run', async (t) => {
	const asked = Promise.withResolvers<void>()
	const ran = svc(['run', 'off', '/tool ask {"question":"Which one?","options":["left","right"]}'], {
		onOutput: (text) => /svc questions answer off \w+ …/.test(text) && asked.resolve(),
	})
	await asked.promise
	const list = await svc(['questions', 'list'])
	t.match(list.stdout, /off +\w+ .* left \/ right +Which one\?/)
	const bare = await svc(['questions', 'answer', 'off', 'left'])
	t.equal(bare.code, exitCodes.not_found)
	t.match(bare.stderr, /no open question "left"; there are: \w+; give the id before the answer/)
	t.equal((await svc(['questions', 'answer', 'off'])).code, exitCodes.usage, 'without a terminal there is no prompt')
	const [open] = (await svc(['questions', 'list', 'off', '--json'])).json()
	t.equal((await svc(['questions', 'answer', 'off', open.question_id, 'to', 'the', 'left'])).code, 0)
	const { code, stdout } = await ran
	t.equal(code, 0)
	t.equal(stdout, 'ask answered: {"answer":"to the left"}\n')
	t.equal((await svc(['questions', 'answer', 'off'])).code, exitCodes.not_found)
})

void t.test('questions of sub-agents are shown while they are open', async (t) => {
	const prompt = `/tool subagent.spawn ${JSON.stringify({ prompt: '/tool ask {"question":"Which one?"}' })}`
	const hint = /a sub-agent of off asks: Which one\?\nAnswer with: svc questions answer off (\w+) …/
	const runUntilAsked = (argv: string[]) => {
		const asked = Promise.withResolvers<string>()
		let output = ''
		const onOutput = (text: string): void => {
			output += text
			const question_id = hint.exec(output)?.[1]
			if (question_id !== undefined) asked.resolve(question_id)
		}
		return { ran: svc(argv, { onOutput }), asked: asked.promise }
	}
	const { ran, asked } = runUntilAsked(['run', 'off', prompt])
	const question_id = await asked
	const [child, parent] = (await gateway.request('GET', '/v1/agents/off/runs?limit=2')).body
	t.match((await svc(['runs', 'show', parent.run_id])).stdout, new RegExp(`Which one\\?.*${question_id}`))
	t.match(parent.open_question, { run_id: child.run_id, question_id })
	// A client that follows the run later sees it too.
	const followed = runUntilAsked(['runs', 'follow', parent.run_id])
	t.equal(await followed.asked, question_id)
	t.equal((await svc(['questions', 'answer', 'off', question_id, 'this'])).code, 0)
	for (const { code, stdout, stderr } of await Promise.all([ran, followed.ran])) {
		t.equal(code, 0)
		t.match(stdout, /^subagent\.spawn answered.*this/)
		t.match(stderr, /answered elsewhere: this/)
	}

	const stopped = runUntilAsked(['run', 'off', prompt])
	await stopped.asked
	const [again] = (await gateway.request('GET', '/v1/agents/off/runs?limit=1')).body
	await gateway.request('POST', `/v1/runs/${again.run_id}/cancel`)
	const { code, stdout, stderr } = await stopped.ran
	t.equal(code, 0, 'the parent run continues without an answer')
	t.match(stderr, /no longer asked/)
	t.match(stdout, /subagent_failed/)
})

void t.test('svc reconnects after a lost connection, and misses nothing of the run', async (t) => {
	const proxy = await startProxy(gateway.url)
	t.teardown(() => proxy.stop())
	const through = svcFor({ home: gateway.home, url: proxy.url })
	const watcher = await follow(t, gateway, 'ada')

	// The tests wait for output: the model may be called before svc has opened the stream that the proxy is to cut.
	const waitFor = (wanted: string): { shown: Promise<void>; onOutput(text: string): void } => {
		const { promise, resolve } = Promise.withResolvers<void>()
		return { shown: promise, onOutput: (text) => void (text.includes(wanted) && resolve()) }
	}
	const [began, lost] = [waitFor('Well,'), waitFor('connection is lost')]
	const ran = through(['run', 'ada', 'hold on'], {
		onOutput: (text) => [began, lost].forEach((wait) => wait.onOutput(text)),
	})
	const call = await model.called('hold on')
	await began.shown
	proxy.cut()
	await lost.shown
	call.answer('still here.')
	const { code, stdout } = await ran
	t.equal(code, 0)
	t.match(stdout, /Well, still here\.\n$/)

	const [beganAgain, lostAgain] = [waitFor('Well,'), waitFor('connection is lost')]
	const ranAgain = through(['run', 'ada', 'gone by then'], {
		onOutput: (text) => [beganAgain, lostAgain].forEach((wait) => wait.onOutput(text)),
	})
	const last = await model.called('gone by then')
	const { run_id } = await watcher.stream.waitFor((event) => event.payload.content === 'gone by then')
	await beganAgain.shown
	proxy.refuse(true)
	proxy.cut()
	await lostAgain.shown
	last.answer('done.')
	await watcher.ended(run_id ?? '')
	proxy.refuse(false)
	const ended = await ranAgain
	t.equal(ended.code, 0)
	t.match(ended.stdout, /Well, done\.\n$/)
})

void t.test(
	'svc events tail shows events from the time of a lost connection, also before its first event',
	async (t) => {
		const proxy = await startProxy(gateway.url)
		t.teardown(() => proxy.stop())
		const open = Promise.withResolvers<void>()
		const lost = Promise.withResolvers<void>()
		const tail = svcFor({ home: gateway.home, url: proxy.url })(
			['events', 'tail', '--type', 'agent.created', '--count', '1'],
			{
				onOutput: (text) => {
					if (text.includes('following')) open.resolve()
					if (text.includes('connection is lost')) lost.resolve()
				},
			},
		)
		await open.promise
		proxy.refuse(true)
		proxy.cut()
		await lost.promise
		await gateway.request('POST', '/v1/agents', { body: { name: 'meanwhile' } })
		proxy.refuse(false)
		t.match((await tail).stdout, /agent\.created meanwhile/)
	},
)

void t.test('each line of a chat is a prompt or a command', async (t) => {
	const before = (await gateway.request('GET', '/v1/agents/off/history')).body.length
	t.ok(before > 0)
	const { code, stdout, stderr } = await svc(['chat', 'off'], { input: 'one\n\n/new\n/tool ask\ntwo\n/exit\nthree\n' })
	t.equal(code, 0)
	t.match(stdout, /received: one[^]*received: two/)
	t.notMatch(stdout, 'three')
	t.match(stderr, 'New session')
	const history = (await gateway.request('GET', '/v1/agents/off/history')).body as { content: string }[]
	t.notOk(
		history.some((message) => message.content === 'one'),
		'the history begins after /new',
	)
	t.equal((await svc(['chat', 'nobody'])).code, exitCodes.not_found)
})

/** A proxy that forwards requests until its connections are cut. */
async function startProxy(
	target: string,
): Promise<{ url: string; cut(): void; refuse(on: boolean): void; stop(): Promise<void> }> {
	const sockets = new Set<Socket>()
	let refusing = false
	const server = createServer((incoming, outgoing) => {
		const { method, headers, url } = incoming
		const onward = httpRequest(new URL(url ?? '/', target), { method, headers, agent: false }, (answer) => {
			outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
			answer.pipe(outgoing)
			answer.on('error', () => outgoing.destroy())
		})
		onward.on('error', () => outgoing.destroy())
		outgoing.on('close', () => onward.destroy())
		incoming.pipe(onward)
	})
	server.on('connection', (socket) => {
		if (refusing) return void socket.destroy()
		sockets.add(socket)
		socket.on('close', () => sockets.delete(socket))
	})
	const { url, stop } = await listenOnLoopback(server)
	const cut = (): void => sockets.forEach((socket) => socket.destroy())
	return { url, cut, refuse: (on) => void (refusing = on), stop }
}

void t.test('--attach sends files with or without a prompt', async (t) => {
	const folder = t.testdir({ 'photo.png': png('cli'), 'table.csv': 'a,b\n' })
	const files = [`${folder}/photo.png`, `${folder}/table.csv`]
	const both = await svc(['run', 'off', '--detach', 'Look.', '--attach', ...files])
	t.equal(both.code, 0, both.stderr)
	const read = async (run_id: string) => (await gateway.request('GET', `/v1/runs/${run_id.trim()}`)).body
	const attachments = [
		{ type: 'image', name: 'photo.png' },
		{ type: 'file', name: 'table.csv' },
	]
	t.match(await read(both.stdout), { prompt: 'Look.', attachments })
	const alone = await svc(['run', 'off', '--attach', `${folder}/photo.png`])
	t.match(alone.stdout, /\[image "photo.png", image\/png, \d+ bytes\]/, 'the offline provider receives the file')

	const misplaced = await svc(['run', 'off', '--attach', `${folder}/photo.png`, 'Look.'])
	t.equal(misplaced.code, exitCodes.usage)
	t.match(misplaced.stderr, /Look\. cannot be read: there is no such file; put the prompt before --attach/)
	const directory = await svc(['run', 'off', 'Look.', '--attach', folder])
	t.match(directory, { code: exitCodes.usage, stderr: /cannot be read: it is a folder; name the files in it/ })
	t.match(await svc(['run', 'off']), { code: exitCodes.usage, stderr: /the prompt is empty/ })
})
