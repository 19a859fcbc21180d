/** Files that go out: whole, under their names, and once. */
import { randomBytes } from 'node:crypto'
import type { OutgoingFile } from '../../../plugins/channels/adapter.ts'
import type { ShownMessage, TestChat } from '../channel.ts'
import { has, must, nonce, same } from './desk.ts'
import type { Check, Desk, Live } from './desk.ts'
import { markOf } from './once.ts'

type Send = (file: OutgoingFile, bytes: Uint8Array) => Promise<{ id: string }>

export const sendingFilesChecks: Check[] = [
	{
		name: 'sends files',
		needs: ['sends_files'],
		async run(desk) {
			const chat = await desk.chat()
			const send = sender(desk, await desk.connect())
			for (const [name, type, media_type] of [
				['data 1.bin', 'file', 'application/octet-stream'],
				['grüße, 漢.csv', 'file', 'text/csv'],
				['tone.ogg', 'audio', 'audio/ogg'],
			] as const) {
				const bytes = randomBytes(100_000)
				const { id } = await send(fileFor(chat, bytes, { name, type, media_type }), bytes)
				must(typeof id === 'string' && /^[ -~]{1,128}$/.test(id), 'sendFile answers with the id of the new message')
				const shown = (await filesIn(chat)).at(-1)
				same(shown?.id, id, 'a file is shown under the id that sendFile returned')
				must(
					shown?.file && Buffer.from(shown.file.bytes).equals(bytes),
					'a file shows with the bytes that it was sent with',
				)
				same(shown.file.name, name, 'a file shows under its name')
			}
		},
	},
	{
		name: 'tells files apart that are the same',
		needs: ['sends_files'],
		async run(desk) {
			const chat = await desk.chat()
			const send = sender(desk, await desk.connect())
			const bytes = randomBytes(1000)
			const first = await send(fileFor(chat, bytes), bytes)
			const second = await send(fileFor(chat, bytes), bytes)
			must(first.id !== second.id, 'another nonce is another file')
			same((await filesIn(chat)).length, 2, 'two files are shown if two were sent')
		},
	},
	{
		name: 'sends a file once, though the answer was lost',
		needs: ['sends_files', 'lost'],
		run: (desk) => sendsOnce(desk, async (live) => live),
	},
	{
		name: 'sends a file once, though the answer was lost and the gateway died',
		needs: ['sends_files', 'lost'],
		run: (desk) =>
			sendsOnce(desk, async (live) => {
				await live.close()
				return desk.connect()
			}),
	},
	{
		name: 'says `refused` where no file was sent',
		needs: ['sends_files', 'refused'],
		async run(desk) {
			const chat = await desk.chat()
			const send = sender(desk, await desk.connect())
			const bytes = randomBytes(1000)
			has(desk.platform.next?.refused, 'next.refused', 'refused').call(desk.platform.next)
			const { code } = await desk.errorOf(send(fileFor(chat, bytes), bytes), 'sendFile throws')
			same(code, 'refused', 'the code says that a retry is useless')
			same(await filesIn(chat), [], 'nothing was sent')
		},
	},
]

/** As the gateway sends: after an unknown outcome it asks `findFile`, and sends again with the same nonce where that knows nothing. */
async function sendsOnce(desk: Desk, meanwhile: (live: Live) => Promise<Live>): Promise<void> {
	let live = await desk.connect()
	const chat = await desk.chat()
	await live.connection.send(desk.message(chat, 'here it is'))
	const before = randomBytes(1000)
	await sender(desk, live)(fileFor(chat, before), before)
	const bytes = randomBytes(2000)
	const file = fileFor(chat, bytes)
	const mark = markOf(live.connection, file)
	has(desk.platform.next?.lost, 'next.lost', 'lost').call(desk.platform.next)
	let sent = await sender(desk, live)(file, bytes).catch((error: { code?: unknown }) => {
		same(error.code, undefined, 'an error without a code means that it is unknown whether the message was sent')
	})
	if (!sent) {
		sent = await desk.afterLoss(await meanwhile(live), async (now) => {
			live = now
			return (await now.connection.findFile?.(file, mark)) ?? sender(desk, now)(file, bytes)
		})
	}
	const shown = await filesIn(chat)
	same(shown.length, 2, 'the file shows once')
	same(shown.at(-1)?.id, sent.id, 'its id is known')
	const another = fileFor(chat, bytes, { after: sent.id })
	const next = await live.connection.findFile?.(another, markOf(live.connection, another))
	same(next, undefined, 'an earlier file is not mistaken for the next one')
}

function sender(desk: Desk, { connection }: Live): Send {
	const send = has(connection.sendFile, 'connection.sendFile', 'sends_files').bind(connection)
	has(desk.adapter.can.files, 'can.files', 'sends_files')
	return send
}

function fileFor({ id, kind }: TestChat, bytes: Uint8Array, more: Partial<OutgoingFile> = {}): OutgoingFile {
	const about = { type: 'file', name: 'notes.bin', media_type: 'application/octet-stream' } as const
	return { chat: { id, kind }, ...about, size: bytes.length, nonce: nonce(), ...more }
}

async function filesIn(chat: TestChat): Promise<ShownMessage[]> {
	return (await chat.shown()).filter(({ file }) => file !== undefined)
}
