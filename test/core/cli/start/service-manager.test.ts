/** Notifications to systemd, for `Type=notify`. A program in place of systemd-notify records them. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serviceManager } from '../../../../core/cli/start/service-manager.ts'
import { makeHome } from '../../../support/gateway.ts'
import { spawnGateway } from '../../../support/process.ts'
import { eventually } from '../../../support/wait.ts'

const program = `#!/bin/sh
echo "$NOTIFY_SOCKET $*" >> "$0.log"
`

void t.test(
	'a gateway notifies that it is ready and that it stops',
	{ skip: process.platform === 'win32' },
	async (t) => {
		const bin = t.testdir()
		const file = join(bin, 'systemd-notify')
		writeFileSync(file, program, { mode: 0o755 })
		const notified = (): string[] =>
			existsSync(`${file}.log`) ? readFileSync(`${file}.log`, 'utf8').trimEnd().split('\n') : []
		const gateway = await spawnGateway(makeHome(), {
			PATH: `${bin}:${process.env.PATH}`,
			NOTIFY_SOCKET: '/run/here',
		})
		t.teardown(() => gateway.kill())
		await eventually(() => notified().length === 1)
		t.equal(notified()[0], `/run/here READY=1 STATUS=Listens at ${gateway.url}`)
		if (process.platform === 'linux')
			t.equal(readFileSync(`/proc/${gateway.pid}/comm`, 'utf8').trim(), 'svc-gateway', 'the name of the process')
		t.equal(await gateway.end(), 0)
		await eventually(() => notified().length === 2)
		t.equal(notified()[1], '/run/here STOPPING=1')
	},
)

void t.test('without NOTIFY_SOCKET nothing runs, and a missing program is reported', async (t) => {
	const empty = t.testdir()
	const failures: string[] = []
	serviceManager({ PATH: empty }, (message) => failures.push(message))('READY=1')
	serviceManager({ PATH: empty, NOTIFY_SOCKET: '/run/here' }, (message) => failures.push(message))('READY=1')
	await eventually(() => failures.length > 0)
	t.strictSame(failures.length, 1)
	t.match(failures[0], /there is no such program in PATH.*Type=exec/)
})
