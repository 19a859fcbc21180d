/** Files that an agent sends with its answers to chats: each once, after the text, or replaced by a line. */
import t from 'tap'
import { png } from '../../support/files.ts'
import { startGateway } from '../../support/gateway.ts'
import { addRoomChannel, bindChat, roomPluginFiles, startRoomPlatform } from '../../support/room-platform.ts'
import type { ShownMessage, RoomFault } from '../../support/room-platform.ts'
import { eventually } from '../../support/wait.ts'

const room = await startRoomPlatform()
const gateway = await startGateway({ config: 'plugins: { room: true }\n', files: roomPluginFiles() })
t.teardown(async () => {
	await gateway.stop()
	await room.stop()
})
const withFiles = await addRoomChannel(gateway, room, 'room_files')
const without = await addRoomChannel(gateway, room)

let chats = 0

interface Chat {
	id: string
	agent: string
	/** Sends a prompt after which the agent sends these files, and waits for `count` messages of the bot. */
	request(files: object[], count: number): Promise<ShownMessage[]>
}

async function chatOf(type: 'room' | 'room_files'): Promise<Chat> {
	const [id, agent] = [`sent-${++chats}`, `sent-agent-${chats}`]
	await gateway.request('POST', '/v1/agents', { body: { name: agent } })
	room.place(id, type)
	await bindChat(gateway, type === 'room' ? without : withFiles, agent, id)
	const before = (await room.shows(id, 1)).length
	return {
		id,
		agent,
		async request(files, count) {
			const lines = files.map((file) => `/tool conversation.send_file ${JSON.stringify(file)}`)
			room.say(id, ['Please send these.', ...lines].join('\n'))
			return (await room.shows(id, before + count)).slice(before)
		},
	}
}

const shownAs = (name: string, text: string): string => `${name}: ${Buffer.from(text).toString('base64')}`
const numbers = { text: 'a,b\n1,2\n', name: 'numbers.csv' }
const notes = { text: '# Notes\n', name: 'notes.md' }

void t.test('files follow the text, in order', async (t) => {
	const chat = await chatOf('room_files')
	const [text, first, second] = await chat.request([numbers, notes], 3)
	t.match(text?.text, /sent_with_answer/)
	t.equal(first?.text, shownAs('numbers.csv', numbers.text))
	t.equal(second?.text, shownAs('notes.md', notes.text))
	t.strictSame([first?.after, second?.after], [text?.id, first?.id])
	const sent = await eventually(
		async () => (await gateway.request('GET', `/v1/audit?agent_id=${chat.agent}&event_type=channel.message_sent`)).body,
		({ events }) => events.length > 0,
	)
	t.strictSame(sent.events[0].payload.message_ids, [text?.id, first?.id, second?.id])
	t.equal((await room.shows(chat.id, 4)).length, 4)
})

for (const fault of ['lost', 'cut', 'limited', 'failed'] satisfies RoomFault['fault'][])
	void t.test(`a file whose request is ${fault} is sent once`, async (t) => {
		const chat = await chatOf('room_files')
		const failure = { fault, on: 'file', retry_after_ms: 1 } as const
		room.failNext(chat.id, failure)
		const shown = await chat.request([numbers, notes], 3)
		t.strictSame(
			shown.slice(1).map(({ text }) => text),
			[shownAs('numbers.csv', numbers.text), shownAs('notes.md', notes.text)],
		)
	})

void t.test('a line replaces a file that the platform refuses, and the others are sent', async (t) => {
	const chat = await chatOf('room_files')
	room.failNext(chat.id, { fault: 'refused', on: 'file' })
	const [, line, second] = await chat.request([numbers, notes], 3)
	t.match(
		line?.text,
		/numbers\.csv.*\(8 bytes\) could not be sent here: scripted refused.*GET \/v1\/agents\/.*\/blobs\/sha256:/,
	)
	t.equal(second?.text, shownAs('notes.md', notes.text))
	const { body } = await gateway.request('GET', `/v1/audit?agent_id=${chat.agent}&event_type=channel.error`)
	t.match(body.events, [{ payload: { code: 'refused', message: 'numbers.csv: scripted refused' } }])
})

void t.test('the text names a file that is too large for the channel', async (t) => {
	const chat = await chatOf('room_files')
	const large = png('x'.repeat(1024 * 1024))
	room.files.set('large', large)
	room.say(chat.id, 'keep it', {
		attachment: 'a photo',
		attachments: [{ what: 'a photo', name: 'large.png', ref: 'large' }],
	})
	await room.shows(chat.id, 2)
	const [, text, file] = await chat.request([{ file: 'large.png' }, notes], 3)
	t.match(text?.text, /large\.png.*\(1\.0 MiB\) could not be sent here: it is larger than 1\.0 MiB/)
	t.equal(file?.text, shownAs('notes.md', notes.text))
})

void t.test('the answer on a channel without files states how to download them', async (t) => {
	const chat = await chatOf('room')
	const [text] = await chat.request([numbers], 1)
	t.match(text?.text, /numbers\.csv.*could not be sent here: this channel sends no files.*\/blobs\/sha256:/)
})
