/** Files of chat messages: they are loaded after the message is accepted, and only its chat waits for them. */
import t from 'tap'
import type { Test } from 'tap'
import type { IncomingMessage } from '../../../plugins/channels/adapter.ts'
import { png } from '../../support/files.ts'
import { startGateway } from '../../support/gateway.ts'
import { addRoomChannel, bindChat, roomPluginFiles, startRoomPlatform } from '../../support/room-platform.ts'
import type { ShownMessage } from '../../support/room-platform.ts'
import { eventually } from '../../support/wait.ts'

const room = await startRoomPlatform()
const gateway = await startGateway({ config: 'plugins: { room: true }\n', files: roomPluginFiles() })
t.teardown(async () => {
	await gateway.stop()
	await room.stop()
})
const channel = await addRoomChannel(gateway, room)

interface Chat {
	id: string
	binding_id: string
	agent: string
	/** Sends a message of a person. `fields`: further fields of the message. */
	say(text: string, fields?: Partial<IncomingMessage>): void
	/** Waits for at least `count` messages of the bot since the chat was bound, and returns them all. */
	answers(count: number): Promise<ShownMessage[]>
	/** Waits until exactly `count` runs exist and are completed, and returns them, oldest first. */
	runs(count: number): Promise<Run[]>
}

interface Run {
	prompt: string
	attachments?: { type: string; name?: string }[]
	status: string
}

let chats = 0

async function chatOf(t: Test, on = channel): Promise<Chat> {
	const [id, agent] = [`files-${++chats}`, `files-agent-${chats}`]
	const { status } = await gateway.request('POST', '/v1/agents', { body: { name: agent } })
	t.equal(status, 201)
	const binding_id = await bindChat(gateway, on, agent, id)
	await room.shows(id, 1)
	return {
		id,
		binding_id,
		agent,
		say: (text, fields) => void room.say(id, text, fields),
		answers: async (count) => (await room.shows(id, count + 1)).slice(1),
		runs: async (count) => {
			const newestFirst: Run[] = await eventually(
				async () => (await gateway.request('GET', `/v1/agents/${agent}/runs`)).body,
				(runs: Run[]) => runs.length === count && runs.every((run) => run.status === 'completed'),
			)
			return newestFirst.toReversed()
		},
	}
}

/** A photo whose download waits until the test serves it. */
function slowPhoto(ref: string): Partial<IncomingMessage> {
	room.files.set(ref, 'never')
	return photo(ref)
}

function photo(ref: string): Partial<IncomingMessage> {
	return { attachment: 'a photo', attachments: [{ what: 'a photo', name: `${ref}.png`, ref }] }
}

const requested = (ref: string) => room.until(() => room.loads.includes(ref), `a request for ${ref}`)

void t.test('a download that does not end blocks only its own chat, which stays in order', async (t) => {
	const [slow, other] = [await chatOf(t), await chatOf(t)]
	slow.say('what is it?', slowPhoto('slow'))
	await requested('slow')
	slow.say('and after that')
	other.say('hello')
	t.match((await other.answers(1))[0]?.text, /hello/)
	t.strictSame(await slow.runs(0), [], 'neither this message nor the next one has a run')
	room.serve('slow', png('slow'))
	await slow.answers(2)
	const [first, second] = await slow.runs(2)
	t.match(first, { prompt: 'what is it?', attachments: [{ type: 'image', name: 'slow.png' }] })
	t.equal(second?.prompt, 'and after that')
	t.equal(room.loads.filter((ref) => ref === 'slow').length, 1)
})

void t.test('the prompt lists files that could not be loaded, and the message is answered', async (t) => {
	const chat = await chatOf(t)
	const files = Array.from({ length: 12 }, (_, n) => ({ what: 'a file', name: `${n}.png`, ref: `many-${n}` }))
	for (const { ref } of files.slice(1)) room.files.set(ref, png(ref))
	chat.say('', { attachment: '12 files', attachments: files })
	await chat.answers(1)
	const [run] = await chat.runs(1)
	t.strictSame(
		run?.attachments?.map(({ name }) => name),
		files.slice(1, 10).map(({ name }) => name),
	)
	t.equal(
		run?.prompt,
		'[Attached but not loaded: a file "0.png" (the room answered with status 404)]\n\n' +
			'[Attached but not loaded: 2 more files (too many files)]',
	)
})

void t.test('/stop and /new drop messages whose files are being loaded, and later ones', async (t) => {
	const chat = await chatOf(t)
	for (const [n, command] of ['/stop', '/new'].entries()) {
		chat.say('look', slowPhoto(`dropped-${n}`))
		await requested(`dropped-${n}`)
		chat.say('and this?')
		chat.say(command)
		t.match((await chat.answers(n + 1))[n]?.text, /^Stopped\./)
		room.serve(`dropped-${n}`, png())
	}
	chat.say('are you there?')
	await chat.answers(3)
	const [run] = await chat.runs(1)
	t.equal(run?.prompt, 'are you there?')
})

void t.test('at most 20 messages of a chat wait for files', async (t) => {
	const chat = await chatOf(t)
	chat.say('first', slowPhoto('first-of-many'))
	for (let n = 2; n <= 21; n++) chat.say(`message ${n}`)
	t.match((await chat.answers(1))[0]?.text, /^Too many messages wait/)
	chat.say('/stop')
	t.match((await chat.answers(2))[1]?.text, /^Stopped/)
	room.serve('first-of-many', png())
	await chat.runs(0)
})

void t.test('unbinding a chat, or deleting its channel or agent, drops its pending messages', async (t) => {
	const other = await addRoomChannel(gateway, room, 'room_find')
	const dropped = await Promise.all([chatOf(t), chatOf(t, other), chatOf(t)])
	const [unbound, deleted, orphan] = dropped
	room.place(deleted.id, 'room_find')
	for (const { id, say } of dropped) say('look', slowPhoto(id))
	for (const { id } of dropped) await requested(id)
	const stays = await chatOf(t)
	await gateway.request('DELETE', `/v1/channels/${channel}/bindings/${unbound.binding_id}`)
	await gateway.request('DELETE', `/v1/channels/${other}`)
	await gateway.request('DELETE', `/v1/agents/${orphan.agent}`)
	for (const { id } of dropped) room.serve(id, png(id))
	// The unbound chat now has another agent. Its answer shows that the earlier message is settled.
	await bindChat(gateway, channel, stays.agent, unbound.id)
	unbound.say('who is there?')
	t.match((await unbound.answers(2))[1]?.text, /who is there/)
	await unbound.runs(0)
	await deleted.runs(0)
	t.equal((await stays.runs(1))[0]?.prompt, 'who is there?')
})
