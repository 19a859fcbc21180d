import { join } from 'node:path'
import t from 'tap'
import { send } from '../../support/gateway.ts'
import type { Answer } from '../../support/gateway.ts'
import { spawnGateway } from '../../support/process.ts'
import { canMount, journaledDisk } from '../../support/small-disk.ts'

void t.test(
	'a gateway whose disk becomes read-only reports the reason, and still reads',
	{ skip: !canMount },
	async (t) => {
		const disk = journaledDisk(t, 96) // with more room than the gateway keeps free
		if (!disk) return t.comment('this machine cannot mount a file as a disk')
		const gateway = await spawnGateway(join(disk.folder, 'home'))
		t.teardown(() => gateway.kill())
		const agents = `${gateway.url}/v1/agents`
		t.equal((await send<Answer>(agents, 'POST', { body: { name: 'ada' } })).status, 201)
		disk.becomeReadOnly()
		const { status, body } = await send<Answer>(agents, 'POST', { body: { name: 'bob' } })
		t.equal(status, 503)
		t.match(body.message, /^a write to the disk has failed \(Read-only file system\), so no more are accepted/)
		t.match((await send<Answer>(agents, 'GET')).body, [{ name: 'ada' }])
	},
)
