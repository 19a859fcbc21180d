/** kill -9 while messages of a chat wait for the end of a run. Together they get the next run, and one answer. */
import { rmSync } from 'node:fs'
import t from 'tap'
import { makeHome, send, startHere } from '../support/gateway.ts'
import type { KillableGateway } from '../support/gateway.ts'
import { startManualModel } from '../support/manual-model.ts'
import { spawnGateway } from '../support/process.ts'
import { providersAt } from '../support/providers.ts'
import { addRoomChannel, bindChat, roomPluginFiles, startRoomPlatform } from '../support/room-platform.ts'

const CHAT = 'merged-chat'

void t.test(
	'messages that wait for the end of a run share the next run, through two kills',
	{ timeout: 300_000 },
	async (t) => {
		const [room, held] = await Promise.all([startRoomPlatform(), startManualModel()])
		const config = `server: { shutdown_grace_s: 0 }
channels: { retry_max_s: 1 }
plugins: { room: true }
default_provider: held
${providersAt({ held: held.url })}`
		const home = makeHome({ config, files: roomPluginFiles() })
		let gateway: KillableGateway = await spawnGateway(home)
		t.teardown(async () => {
			await gateway.kill()
			await Promise.all([room.stop(), held.stop()])
			rmSync(home, { recursive: true, force: true })
		})
		const caller = {
			request: (method: string, path: string, { body }: { body?: unknown } = {}) =>
				send(`${gateway.url}${path}`, method, { body }),
		}
		await caller.request('POST', '/v1/agents', { body: { name: 'ada' } })
		await bindChat(caller, await addRoomChannel(caller, room, 'room', { during_run: 'merged' }), 'ada', CHAT)
		/** Waits for so many messages after the confirmation of the binding. */
		const answers = async (count: number) => (await room.shows(CHAT, count + 1)).slice(1).map(({ text }) => text)
		await answers(0)

		room.say(CHAT, 'one')
		await held.called('one')
		for (const text of ['two', 'three', '/whoami']) room.say(CHAT, text)
		t.match((await answers(1))[0], /^chat/, 'the earlier messages were accepted')
		await gateway.kill()
		gateway = await spawnGateway(home)
		const first = await held.called('one', 2)
		first.answer('First.')
		await held.called('two\n\nthree')
		await gateway.kill()
		gateway = await startHere(home)
		const second = await held.called('two\n\nthree', 2)
		second.answer('Both.')
		t.strictSame((await answers(3)).slice(1), ['Well, First.', 'Well, Both.'])
		const { body } = await caller.request('GET', '/v1/agents/ada/runs')
		t.strictSame(
			body.map(({ prompt }: { prompt: string }) => prompt),
			['two\n\nthree', 'one'],
		)
	},
)
