/** What systemd hears of a gateway with `Type=notify`. A program in the place of systemd-notify writes it down. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serviceManager } from '../../../../core/cli/start/service-manager.ts'
import { makeHome } from '../../../support/gateway.ts'
import { spawnGateway } from '../../../support/process.ts'
import { eventually } from '../../../support/wait.ts'

const program = `#!/bin/sh
echo "$NOTIFY_SOCKET $*" >> "$0.told"
`

void t.test('a gateway says that it is ready, and that it stops', { skip: process.platform === 'win32' }, async (t) => {
	const bin = t.testdir()
	const file = join(bin, 'systemd-notify')
	writeFileSync(file, program, { mode: 0o755 })
	const told = (): string[] =>
		existsSync(`${file}.told`) ? readFileSync(`${file}.told`, 'utf8').trimEnd().split('\n') : []
	const gateway = await spawnGateway(makeHome(), {
		PATH: `${bin}:${process.env.PATH}`,
		NOTIFY_SOCKET: '/run/here',
	})
	t.teardown(() => gateway.kill())
	await eventually(() => told().length === 1)
	t.equal(told()[0], `/run/here READY=1 STATUS=Listens at ${gateway.url}`)
	if (process.platform === 'linux')
		t.equal(readFileSync(`/proc/${gateway.pid}/comm`, 'utf8').trim(), 'svc-gateway', 'the name of the process')
	t.equal(await gateway.end(), 0)
	await eventually(() => told().length === 2)
	t.equal(told()[1], '/run/here STOPPING=1')
})

void t.test('nothing runs without NOTIFY_SOCKET, and a missing program is told', async (t) => {
	const empty = t.testdir()
	const failures: string[] = []
	serviceManager({ PATH: empty }, (message) => failures.push(message))('READY=1')
	serviceManager({ PATH: empty, NOTIFY_SOCKET: '/run/here' }, (message) => failures.push(message))('READY=1')
	await eventually(() => failures.length > 0)
	t.strictSame(failures.length, 1)
	t.match(failures[0], /there is no such program in PATH.*Type=exec/)
})
