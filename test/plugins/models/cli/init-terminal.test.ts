/** svc init on a pseudo-terminal, with a real model server. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { presets } from '../../../../plugins/shared/model-presets.ts'
import { serverUrls } from '../../../../sandbox/provider-kinds.ts'
import { makeHome, startGateway } from '../../../support/gateway.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import { listenOnLoopback } from '../../../support/loopback.ts'
import { closedPort } from '../../../support/free-ports.ts'
import { startModelServer } from '../../../support/model-server.ts'
import { follow } from '../../../support/runs.ts'
import { openTerminal } from '../../../support/terminal.ts'
import type { TerminalProgram } from '../../../support/terminal.ts'

const svcFile = fileURLToPath(new URL('../../../../core/svc.mjs', import.meta.url))
const KEY = 'sk-init-0123456789abcdef'
const DOWN = '\x1b[B'
const CTRL_C = '\x03'
/** Answers the first question: another server. */
const OTHER = `${DOWN.repeat(Object.keys(presets).indexOf('other'))}\r`

const model = await startModelServer()
t.teardown(() => model.stop())
for (const name of ['large', 'medium', 'small']) model.mock.on({ model: name }, { content: `I am ${name}.` })

/** A proxy of aimock that requires `KEY`, since aimock accepts any key. `lists`: whether it lists its models. */
async function startKeyedServer({ lists = true } = {}): Promise<string> {
	const proxy = createServer((request, response) => {
		const key = request.headers.authorization?.replace('Bearer ', '')
		const refuse = (status: number, message: string): void =>
			void response
				.writeHead(status, { 'content-type': 'application/json' })
				.end(JSON.stringify({ error: { message, type: 'invalid_request_error' } }))
		if (!lists && request.url?.endsWith('/models')) return refuse(404, 'no such route')
		if (key !== KEY) return refuse(401, `Incorrect API key provided: ${key ?? 'none'}.`)
		const forwarded = httpRequest(new URL(request.url ?? '', model.url), {
			method: request.method,
			headers: request.headers,
		})
		forwarded.on('response', (answer) => answer.pipe(response.writeHead(answer.statusCode ?? 0, answer.headers)))
		request.pipe(forwarded)
	})
	const { url, stop } = await listenOnLoopback(proxy)
	t.teardown(stop)
	return `${url}/v1`
}

const keyed = await startKeyedServer()
const unlisted = await startKeyedServer({ lists: false })
/** Nothing listens here. */
const dead = `http://127.0.0.1:${await closedPort(t)}/v1`

interface Setup extends TerminalProgram {
	home: string
	file: string
}

function init(t: Test, args: string[] = [], { home = makeHome({}, t), env = {} } = {}): Setup {
	const terminal = openTerminal(process.execPath, [svcFile, 'init', ...args], {
		cwd: home,
		env: { PATH: process.env.PATH ?? '', HOME: home, SVC_HOME: home, ...env },
		columns: 160,
		rows: 60,
	})
	t.teardown(() => terminal.kill())
	return { ...terminal, home, file: join(home, 'config/gateway.yaml') }
}

async function answerOf(t: Test, gateway: TestGateway): Promise<string> {
	const ada = await follow(t, gateway, 'ada')
	const run_id = await ada.complete('Who are you?')
	return String((await ada.waitFor(run_id, 'message.assistant')).payload.content)
}

void t.test('a wrong address, key and model are each asked again, and the resulting provider works', async (t) => {
	const svc = init(t)
	await svc.shows('Where do the models run?')
	svc.type(OTHER)
	await svc.shows('What do you want to call it?')
	svc.type('mine\r')
	await svc.shows('What is the address')
	await svc.shows('http://127.0.0.1:8000/v1')
	svc.type('localhost\r')
	await svc.shows('must be an address such as')
	svc.type(`\x15${dead}\r`)
	await svc.shows(/does not answer: .*\n.*What do you want to do\?/)
	svc.type('\r')
	// The question comes with the previous input.
	await svc.shows(/What is the address[^]*What is the address[^]*:\d+\/v1/)
	svc.type(`\x15${keyed}\r`)

	await svc.shows('Where does the API key come from?')
	svc.type('\r')
	await svc.shows('Name of the key in the vault?')
	svc.type('sk-abc\r')
	await svc.shows('this looks like the key itself')
	svc.type('\x15MY_KEY\r')
	await svc.shows('Key MY_KEY (hidden')
	svc.type('sk-wrong-9876543210\r')
	await svc.shows('refuses the key (401): Incorrect API key provided: [redacted].')
	svc.type('\r')
	await svc.shows(/Key MY_KEY[^]*Key MY_KEY/)
	svc.type(`${KEY}\r`)

	await svc.shows('Which model?')
	await svc.shows(/large[^]*medium[^]*small/)
	svc.type('gigantic')
	await svc.shows('gigantic (as typed)')
	svc.type('\r')
	await svc.shows(/answers with an error \(404\): .*\n.*What do you want to do\?/)
	t.notOk(readFileSync(svc.file, 'utf8').includes('gigantic'), 'nothing is written before it works')
	svc.type('\r')
	await svc.shows(/Which model\?[^]*Which model\?[^]*medium/)
	svc.type(`${DOWN}\r`)
	await svc.shows('medium answers.')
	await svc.shows('Stored MY_KEY in the vault.')
	await svc.shows('Next: svc start')
	t.equal(await svc.ended, 0)

	for (const key of [KEY, 'sk-wrong-9876543210']) t.notMatch(svc.written(), key)
	const text = readFileSync(svc.file, 'utf8')
	t.notMatch(text, KEY)
	t.match(
		text,
		`  mine:\n    kind: openai\n    base_url: ${keyed}\n    api_key:\n      secret: MY_KEY\n    model: medium\n`,
	)
	const gateway = await startGateway({ home: svc.home })
	t.teardown(() => gateway.stop())
	t.equal(await answerOf(t, gateway), 'I am medium.')
})

void t.test('Ctrl-C shows what is kept, and prints a command that continues', async (t) => {
	const svc = init(t, ['--key-env', 'THE_KEY'], { env: { THE_KEY: KEY } })
	await svc.shows('Where do the models run?')
	svc.type(OTHER)
	await svc.shows('What do you want to call it?')
	svc.type('\r')
	await svc.shows('What is the address')
	svc.type(`${keyed}\r`)
	await svc.shows('Which model?')
	svc.type(CTRL_C)
	t.equal(await svc.ended, 130)
	const command = `svc init --kind openai --name models --base-url ${keyed} --key-env THE_KEY`
	t.match(svc.screen(), `Created ${svc.file} with the defaults; no provider was added.`)
	t.match(svc.screen(), `To continue: ${command}\n`.trimEnd())
	t.notMatch(svc.written(), KEY)
	t.notMatch(readFileSync(svc.file, 'utf8'), keyed)

	const again = init(t, command.split(' ').slice(2), { home: svc.home, env: { THE_KEY: KEY } })
	await again.shows('Which model?')
	again.type('sma')
	await again.shows('(2 matches)')
	again.type('\r')
	await again.shows('small answers.')
	t.equal(await again.ended, 0)
	t.notMatch(again.screen(), /Where do the models run|address of its API|Which key/)
	t.match(readFileSync(svc.file, 'utf8'), 'api_key: ${THE_KEY}')

	const third = init(t, ['--name', 'models', '--base-url', keyed], { home: svc.home, env: { THE_KEY: KEY } })
	await third.shows('Replace the provider models?')
	third.type(CTRL_C)
	t.equal(await third.ended, 130)
	t.match(third.screen(), `Nothing was changed in ${svc.file}.`)
})

void t.test('a server without a list of models works, and a provider can be saved although it fails', async (t) => {
	const svc = init(t, ['--name', 'later', '--base-url', unlisted])
	await svc.shows('Where does the API key come from?')
	svc.type(`${DOWN}${DOWN}\r`)
	await svc.shows('Which model? (The server does not list them.)')
	svc.type('large\r')
	await svc.shows('requires a key (401)')
	await svc.shows('Leave without saving')
	svc.type(`${DOWN.repeat(4)}\r`)
	await svc.shows('Next: svc start')
	t.equal(await svc.ended, 0)
	t.match(readFileSync(svc.file, 'utf8'), `base_url: ${unlisted}\n    model: large\n`)
})

void t.test('leaving after a failure changes nothing', async (t) => {
	const svc = init(t, ['--name', 'no', '--base-url', dead])
	await svc.shows('Leave without saving')
	svc.type(`${DOWN.repeat(3)}\r`)
	t.equal(await svc.ended, 1)
	t.match(svc.screen(), `To continue: svc init --kind openai --name no --base-url ${dead}`)
	t.notMatch(readFileSync(svc.file, 'utf8'), dead)
})

void t.test('an invalid option is asked for, and Ctrl-C ends a check', async (t) => {
	const server = createServer()
	const { url, stop } = await listenOnLoopback(server)
	t.teardown(stop)
	const silent = `${url}/v1`
	const requested = once(server, 'request')
	const svc = init(t, ['--name', 'mine', '--base-url', 'localhost', '--model', 'small'])
	await svc.shows(/--base-url: must be an address such as[^]*Where do the models run\?/)
	svc.type(OTHER)
	await svc.shows('What is the address')
	svc.type(`${silent}\r`)
	await svc.shows(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] Asking the server for its models/)
	await requested
	svc.type(CTRL_C)
	t.equal(await svc.ended, 130)
	t.match(svc.screen(), `To continue: svc init --kind openai --name mine --base-url ${silent} --model small`)
})

void t.test('a running gateway gets the key and the provider at once', async (t) => {
	const gateway = await startGateway()
	t.teardown(() => gateway.stop())
	const svc = init(t, ['--name', 'mine', '--base-url', keyed, '--key-secret', 'MY_KEY', '--model', 'small'], {
		home: gateway.home,
	})
	await svc.shows('Key MY_KEY')
	svc.type(`${KEY}\r`)
	await svc.shows('small answers.')
	await svc.shows('The running gateway uses it.')
	t.equal(await svc.ended, 0)
	t.equal(await answerOf(t, gateway), 'I am small.')
})

for (const [kind, usual] of Object.entries(serverUrls).filter(([kind]) => kind !== 'openai'))
	void t.test(`a server of kind ${kind} is asked in its own API, and the resulting provider works`, async (t) => {
		const { origin } = new URL(model.url)
		const path = new URL(usual).pathname
		const svc = init(t, ['--kind', kind, '--name', 'mine', '--base-url', origin + path, '--key-env', 'THE_KEY'], {
			env: { THE_KEY: KEY },
		})
		await svc.shows('Which model?')
		svc.type('small')
		svc.type('\r')
		await svc.shows('small answers.')
		t.equal(await svc.ended, 0)
		t.match(readFileSync(svc.file, 'utf8'), `  mine:\n    kind: ${kind}\n    base_url: ${origin}${path}\n`)
		const gateway = await startGateway({ home: svc.home, env: { THE_KEY: KEY } })
		t.teardown(() => gateway.stop())
		t.equal(await answerOf(t, gateway), 'I am small.')
	})

void t.test('a terminal that states no size, such as a serial line, shows whole questions', async (t) => {
	const home = makeHome({}, t)
	const svc = openTerminal('sh', ['-c', 'stty rows 0 cols 0; exec "$0" "$@"', process.execPath, svcFile, 'init'], {
		cwd: home,
		env: { PATH: process.env.PATH ?? '', HOME: home, SVC_HOME: home },
		columns: 160,
		rows: 60,
	})
	t.teardown(() => svc.kill())
	await svc.shows('Where do the models run?')
	svc.type(OTHER)
	await svc.shows('What do you want to call it?')
	svc.type('mine')
	await svc.shows('mine')
	svc.type(CTRL_C)
	await svc.ended
})
