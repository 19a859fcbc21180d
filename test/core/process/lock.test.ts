import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { holderOf, lockHome } from '../../../core/process/lock.ts'
import { testFolder } from '../../support/folder.ts'

/** The path is short, since that of a local socket has a limit. */
function makeShortHome(t: Test): string {
	const home = testFolder(t)
	mkdirSync(join(home, 'run'))
	return home
}

const lockFile = new URL('../../../core/process/lock.ts', import.meta.url).href
/** Acquires the lock, prints the result, and holds it. */
const holder = `
	const { lockHome } = await import(${JSON.stringify(lockFile)})
	await lockHome(process.argv[1]).then(() => console.log('held'), (error) => console.log(error.code))
	setInterval(() => {}, 1000)
`

function start(home: string): { child: ReturnType<typeof spawn>; result: Promise<string> } {
	const child = spawn(process.execPath, ['--input-type=module', '-e', holder, home], {
		stdio: ['ignore', 'pipe', 'inherit'],
	})
	const result = once(child.stdout as NodeJS.ReadableStream, 'data').then(([data]) => String(data).trim())
	return { child, result }
}

void t.test('a second lock is refused with the first process, until that releases its lock', async (t) => {
	const home = makeShortHome(t)
	const first = await lockHome(home)
	await t.rejects(lockHome(home), { code: 'home_in_use', message: new RegExp(`process ${process.pid}`) })
	await first[Symbol.asyncDispose]()
	const again = await lockHome(home)
	await again[Symbol.asyncDispose]()
})

void t.test('a killed process releases the lock, and one of several concurrent starts gets it', async (t) => {
	const home = makeShortHome(t)
	for (let round = 0; round < 3; round++) {
		const many = [start(home), start(home), start(home)]
		t.teardown(() => many.forEach((one) => one.child.kill('SIGKILL')))
		const results = await Promise.all(many.map((one) => one.result))
		t.strictSame(results.toSorted(), ['held', 'home_in_use', 'home_in_use'])
		const gone = many.map((one) => once(one.child, 'exit'))
		for (const one of many) one.child.kill('SIGKILL')
		await Promise.all(gone)
	}
})

void t.test('a process that was killed while it removed a stale lock does not block later ones', async (t) => {
	const home = makeShortHome(t)
	const { child, result } = start(home)
	t.equal(await result, 'held')
	child.kill('SIGKILL')
	await once(child, 'exit')
	mkdirSync(join(home, 'run/gateway.lock.cleaning'))
	const lock = await lockHome(home)
	await lock[Symbol.asyncDispose]()
})

void t.test('clients that connect and disconnect at once do no harm', async (t) => {
	const home = makeShortHome(t)
	const lock = await lockHome(home)
	const path = join(home, 'run/gateway.lock')
	for (let round = 0; round < 200; round++) {
		const socket = net.connect(path)
		await once(socket, 'connect')
		socket.destroy()
	}
	await t.rejects(lockHome(home), { code: 'home_in_use' })
	await lock[Symbol.asyncDispose]()
})

void t.test('a home that cannot be written to is refused with what to change', async (t) => {
	const home = testFolder(t) // without the folder of the lock, in which no socket can be created either
	const message =
		/gateway\.lock cannot be made \(.*give the home to the user that runs the gateway, or mount its disk for writing/
	await t.rejects(lockHome(home), { code: 'unavailable', message })
})

void t.test('a home with a long path can be locked', async (t) => {
	const home = join(t.testdir({}), 'x'.repeat(120))
	mkdirSync(join(home, 'run'), { recursive: true })
	const lock = await lockHome(home)
	await t.rejects(lockHome(home), { code: 'home_in_use' })
	await lock[Symbol.asyncDispose]()
})

void t.test('the answer of a listener that is not a gateway is ignored', async (t) => {
	for (const answer of ['1; rm -rf ~\n', '\x1b[2J', 'x'.repeat(100_000), '']) {
		const home = makeShortHome(t)
		const server = net.createServer((socket) => socket.on('error', () => {}).end(answer))
		await once(server.listen(join(home, 'run', 'gateway.lock')), 'listening')
		t.equal(await holderOf(home), 'unknown', answer.slice(0, 20))
		server.close()
	}
})

void t.test('a listener that never ends its answer does not block', async (t) => {
	const home = makeShortHome(t)
	const sockets = new Set<net.Socket>()
	const server = net.createServer((socket) => {
		sockets.add(socket)
		const drip = setInterval(() => socket.write('1'), 100)
		socket.on('error', () => {}).on('close', () => clearInterval(drip))
	})
	await once(server.listen(join(home, 'run', 'gateway.lock')), 'listening')
	t.teardown(() => {
		for (const socket of sockets) socket.destroy()
		server.close()
	})
	t.equal(await holderOf(home), 'unknown')
})
