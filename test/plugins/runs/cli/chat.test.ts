/** svc chat and svc run while a question is open or an answer is in progress. */
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t from 'tap'
import type { Test } from 'tap'
import { exitCodes } from '../../../../core/cli/contract.ts'
import { main } from '../../../../core/cli/main.ts'
import { svcFor } from '../../../support/cli.ts'
import { startGateway } from '../../../support/gateway.ts'
import type { Answer } from '../../../support/gateway.ts'
import { startManualModel } from '../../../support/manual-model.ts'
import { follow } from '../../../support/runs.ts'

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
const svc = svcFor(gateway)
await gateway.request('POST', '/v1/agents', { body: { name: 'held', config: { provider: 'held' } } })

const asking = '/tool ask {"question":"Which city?","options":["Rome","Oslo"]}'
/** The typed prompt does not contain the question as the terminal shows it. */
const ask = (question: string): string => `/tool ask {"question":"${question.replace(' ', String.raw`\u0020`)}"}`
const statuses = async (agent: string): Promise<string[]> =>
	(await gateway.request('GET', `/v1/agents/${agent}/runs`)).body.map((run: Answer) => run.status)

void t.test('a run behind an open question shows the question, and how to answer or cancel it', async (t) => {
	const ada = await follow(t, gateway, 'ada')
	const first = await ada.start(asking)
	await ada.waitFor(first, 'run.paused')
	const waits = Promise.withResolvers<void>()
	const ran = svc(['run', 'ada', 'Hello'], { onOutput: (text) => text.includes('waits for') && waits.resolve() })
	await waits.promise
	const queued = (await gateway.request('GET', '/v1/agents/ada/runs?limit=1')).body[0].run_id
	const shown = Promise.withResolvers<void>()
	const followed = svc(['runs', 'follow', queued], {
		onOutput: (text) => text.includes('waits for the answer to: Which city?') && shown.resolve(),
	})
	await shown.promise
	const [{ question_id }] = (await gateway.request('GET', '/v1/agents/ada/questions')).body
	t.equal((await svc(['questions', 'answer', 'ada', question_id, 'Rome'])).code, 0)
	const { code, stdout, stderr } = await ran
	t.equal(code, 0)
	t.match(stdout, 'received: Hello')
	t.equal((await followed).stdout, stdout, 'svc runs follow shows the same')
	t.match(
		stderr,
		`(waits for the answer to: Which city? (Rome / Oslo) - svc questions answer ada ${question_id} …, or svc runs cancel ${first})`,
	)
	t.equal(stderr.split('waits for').length, 2, 'the wait is shown once')
})

void t.test('a run behind an active run names it, and shows its question once it is asked', async (t) => {
	const waits = Promise.withResolvers<void>()
	const asked = Promise.withResolvers<void>()
	const started = await svc(['run', 'held', '--detach', 'first'])
	const call = await model.called('first')
	const ran = svc(['run', 'held', 'second'], {
		onOutput: (text) => {
			if (text.includes('waits for an earlier run')) waits.resolve()
			if (text.includes('waits for the answer to: Really?')) asked.resolve()
		},
	})
	await waits.promise
	call.callTool('ask', '{"question":"Really?"}')
	await asked.promise
	t.equal(
		(await svc(['questions', 'answer', 'held', '--quiet'])).code,
		exitCodes.usage,
		'without a terminal there is no prompt',
	)
	t.equal((await svc(['runs', 'cancel', started.stdout.trim()])).code, 0)
	const second = await model.called('second')
	second.answer('done.')
	const { code, stdout, stderr } = await ran
	t.strictSame([code, stdout], [0, 'Well, done.\n'])
	t.match(stderr, `svc runs follow ${started.stdout.trim()}, or svc runs cancel`)
})

void t.test('a terminal asks the question of an earlier run at once', async (t) => {
	const bea = await follow(t, gateway, 'bea')
	const first = await bea.start(asking)
	await bea.waitFor(first, 'run.paused')
	const { code, stdout, stderr } = await svc(['run', 'bea', 'Hello'], { person: [['Something else', '\x1b[B\r']] })
	t.equal(code, 0)
	t.match(stderr, `an earlier run of this conversation waits for an answer; svc runs cancel ${first} ends it`)
	t.match(stdout, 'received: Hello')
	t.match((await bea.read(first)).answer, '{"answer":"Oslo"}')
})

void t.test('a terminal accepts commands during an answer, and queues prompts', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'dan', config: { provider: 'held' } } })
	const chat = openChat(t, 'dan')
	await chat.shows('> ')
	chat.type('one')
	const one = await model.called('one')
	chat.type('/help')
	await chat.shows('/stop   stop every run')
	chat.type('two')
	await chat.shows('will be sent after this answer')
	one.answer('first.')
	const two = await model.called('two')
	chat.type('/stop')
	await chat.shows('All runs of dan are stopped')
	await two.hungUp
	await chat.shows('the run was stopped')
	await chat.shows('> ')
	chat.type('three')
	const three = await model.called('three')
	chat.type('/new')
	await three.hungUp
	await chat.shows('New session')
	await chat.shows('> ')
	chat.type('four')
	const four = await model.called('four')
	chat.type('/exit')
	t.equal(await chat.ended, 0)
	t.ok(four.open, 'the run continues after /exit')
	four.answer('late.')
	t.match(chat.stdout(), /^Well, first\.\n/)
	t.same((await statuses('dan')).toSpliced(0, 1), ['stopped', 'stopped', 'completed'])
})

void t.test('a terminal accepts commands at a question; other text with a slash is the answer', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'flo' } })
	const chat = openChat(t, 'flo')
	await chat.shows('> ')
	chat.type(ask('Which file?'))
	await chat.shows('Which file?')
	chat.type('/help')
	await chat.shows('/new    begin')
	await chat.shows('Which file?')
	chat.type('/etc/hosts')
	await chat.shows('tokens in')
	await chat.shows('> ')
	t.match(chat.stdout(), '{"answer":"/etc/hosts"}')
	chat.type(ask('And now?'))
	await chat.shows('And now?')
	chat.type('/new')
	await chat.shows('New session')
	await chat.shows('> ')
	chat.type(ask('Still there?'))
	await chat.shows('Still there?')
	chat.type('/exit')
	t.equal(await chat.ended, 0)
	t.strictSame(await statuses('flo'), ['paused', 'stopped', 'completed'])
})

void t.test('a pipe accepts commands, and reports unknown ones', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'cid' } })
	const input = '/help\n/hlep me\n /etc/hosts holds what?\n/tool memory.stm_read {"key":"a"}\n'
	const { code, stdout, stderr } = await svc(['chat', 'cid'], { input })
	t.equal(code, exitCodes.failed, 'one line was not sent')
	t.match(stderr, /\/stop +stop every run of the agent/)
	t.match(stderr, 'Unknown command /hlep; nothing was sent.')
	t.match(stdout, /received: \/etc\/hosts holds what\?[^]*memory\.stm_read answered/)
	t.equal((await statuses('cid')).length, 2)
})

void t.test('a pipe sends its lines in order, and accepts commands while a question is open', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'eve' } })
	const ran = await svc(['chat', 'eve'], {
		input: `Hello\n${asking}\n/new\n${asking}\n/stop\nAgain\n${asking}\n/exit\n`,
	})
	t.equal(ran.code, exitCodes.failed)
	t.match(ran.stdout, /received: Hello[^]*received: Again/)
	t.match(ran.stderr, /\(stopped\)[^]*New session[^]*All runs of eve are stopped[^]*the run continues: svc runs follow/)
	t.strictSame(await statuses('eve'), ['paused', 'completed', 'stopped', 'stopped', 'completed'])
})

void t.test('lines that are pasted while the program is blocked are one prompt', async (t) => {
	await gateway.request('POST', '/v1/agents', { body: { name: 'gus', config: { provider: 'held' } } })
	const chat = openChat(t, 'gus')
	await chat.shows('> ')
	chat.type('first line')
	const first = await model.called('first line')
	const [near, far] = await socketPair(t)
	near.on('data', () => chat.press('third\r'))
	chat.press('second\r')
	setImmediate(() => {
		far.write('.')
		Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
	})
	await chat.shows('will be sent after this answer')
	first.answer('done.')
	;(await model.called('second\nthird')).answer('too.')
	await chat.shows('tokens in')
	chat.type('/exit')
	t.equal(await chat.ended, 0)
})

interface Chat {
	type(line: string): void
	/** At once. */
	press(keys: string): void
	/** Settles once the terminal shows the text after that of the previous call. */
	shows(text: string): Promise<void>
	stdout(): string
	ended: Promise<number>
}

/** A person at a terminal. */
function openChat(t: Test, agent: string): Chat {
	const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => stdin })
	const stdout = new PassThrough().setEncoding('utf8')
	const stderr = Object.assign(new PassThrough().setEncoding('utf8'), { isTTY: true, columns: 200 })
	let shown = ''
	let answered = ''
	let check = (): void => {}
	stderr.on('data', (data: string) => {
		shown += data
		check()
	})
	stdout.on('data', (data: string) => (answered += data))
	const end = new AbortController()
	t.teardown(() => end.abort())
	const env = { SVC_URL: gateway.url, NO_COLOR: '1' }
	return {
		type: (line) => void setImmediate(() => stdin.write(`${line}\r`)),
		press: (keys) => void stdin.write(keys),
		shows: (text) =>
			new Promise((resolve) => {
				check = () => {
					const at = shown.indexOf(text)
					if (at < 0) return
					shown = shown.slice(at + text.length)
					check = () => {}
					resolve()
				}
				check()
			}),
		stdout: () => answered,
		ended: main(['chat', agent], { env, cwd: '/', stdin, stdout, stderr, signal: end.signal }),
	}
}

/** The two ends of a connection: what is written to one is read from the other in the next turn of the event loop. */
async function socketPair(t: Test): Promise<[Socket, Socket]> {
	const server = createServer().listen(0, '127.0.0.1')
	await once(server, 'listening')
	const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
	const [[near]] = await Promise.all([once(server, 'connection'), once(far, 'connect')])
	t.teardown(() => {
		for (const socket of [near as Socket, far]) socket.destroy()
		server.close()
	})
	return [near as Socket, far]
}
