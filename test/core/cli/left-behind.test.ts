/** run/gateway.json of a gateway that was killed: another program may use its address now. */
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { addressBook } from '../../../core/cli/address.ts'
import { exitCodes } from '../../../core/cli/contract.ts'
import { svcFor } from '../../support/cli.ts'
import { testFolder } from '../../support/folder.ts'
import { startGateway, startHere } from '../../support/gateway.ts'
import { listenOnLoopback } from '../../support/loopback.ts'
import { spawnGateway } from '../../support/process.ts'

const home = testFolder(t)
const killed = await spawnGateway(home)
const svc = svcFor({ home })
await svc(['agents', 'create', 'ada'])
await killed.kill()

const { port } = new URL(killed.url)
const left = new RegExp(`no gateway runs with the home ${home} \\(it was killed\\); start one with "svc start"`)

void t.test('no program listens at the address', async (t) => {
	t.ok(existsSync(join(home, 'run/gateway.json')))
	t.match(await svc(['agents']), { code: exitCodes.unavailable, stdout: '', stderr: left })
})

void t.test('another program listens at the address', async (t) => {
	const requested: (string | undefined)[] = []
	const other = createServer((request, response) => {
		requested.push(request.url)
		response.end('<html>')
	})
	t.teardown((await listenOnLoopback(other, Number(port))).stop)
	for (const command of ['agents', 'status'])
		t.match(await svc([command]), { code: exitCodes.unavailable, stdout: '', stderr: left })
	t.strictSame(requested, [], 'it gets no request, which could carry a token')
})

void t.test('the gateway of another home listens at the address', async (t) => {
	const other = await startGateway({ env: { SVC_PORT: port } })
	t.teardown(() => other.stop())
	await other.request('POST', '/v1/agents', { body: { name: 'ada' } })
	t.match(await svc(['agents', 'delete', 'ada', '--yes']), { code: exitCodes.unavailable, stderr: left })
	t.equal((await other.request('GET', '/v1/agents/ada')).status, 200)
	t.equal((await svcFor({ home, url: other.url })(['agents'])).code, 0, 'SVC_URL takes precedence')
})

void t.test('without SVC_HOME, svc uses the default address', async (t) => {
	const book = addressBook({}, home)
	await book.checkAlive()
	t.equal(book.url(), 'http://127.0.0.1:3000')
})

void t.test('svc finds the gateway again once it runs', async (t) => {
	const again = await startHere(home)
	t.teardown(() => again.kill())
	t.match((await svc(['agents'])).stdout, 'ada')
})
