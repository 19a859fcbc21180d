/** Checks of sending files: complete, with their names, and exactly once. */
import { randomBytes } from 'node:crypto'
import type { OutgoingFile } from '../../../plugins/channels/adapter.ts'
import type { ShownMessage, TestChat } from '../channel.ts'
import { has, must, nonce, same } from './harness.ts'
import type { Check, Harness, Live } from './harness.ts'
import { markOf } from './once.ts'

type Send = (file: OutgoingFile, bytes: Uint8Array) => Promise<{ id: string }>

export const sendingFilesChecks: Check[] = [
	{
		name: 'sends files',
		needs: ['sends_files'],
		async run(harness) {
			const chat = await harness.chat()
			const send = sender(harness, await harness.connect())
			for (const [name, type, media_type] of [
				['data 1.bin', 'file', 'application/octet-stream'],
				['grüße, 漢.csv', 'file', 'text/csv'],
				['tone.ogg', 'audio', 'audio/ogg'],
			] as const) {
				const bytes = randomBytes(100_000)
				const { id } = await send(fileFor(chat, bytes, { name, type, media_type }), bytes)
				must(typeof id === 'string' && /^[ -~]{1,128}$/.test(id), 'sendFile returns the id of the new message')
				const shown = (await filesIn(chat)).at(-1)
				same(shown?.id, id, 'a file is shown under the id that sendFile returned')
				must(
					shown?.file && Buffer.from(shown.file.bytes).equals(bytes),
					'a file is shown with the bytes that were sent',
				)
				same(shown.file.name, name, 'a file is shown with its name')
			}
		},
	},
	{
		name: 'distinguishes identical files',
		needs: ['sends_files'],
		async run(harness) {
			const chat = await harness.chat()
			const send = sender(harness, await harness.connect())
			const bytes = randomBytes(1000)
			const first = await send(fileFor(chat, bytes), bytes)
			const second = await send(fileFor(chat, bytes), bytes)
			must(first.id !== second.id, 'another nonce is another file')
			same((await filesIn(chat)).length, 2, 'two files are shown if two were sent')
		},
	},
	{
		name: 'sends a file once although the answer was lost',
		needs: ['sends_files', 'lost'],
		run: (harness) => sendsOnce(harness, async (live) => live),
	},
	{
		name: 'sends a file once although the answer was lost and the gateway was killed',
		needs: ['sends_files', 'lost'],
		run: (harness) =>
			sendsOnce(harness, async (live) => {
				await live.close()
				return harness.connect()
			}),
	},
	{
		name: 'reports `refused` if no file was sent',
		needs: ['sends_files', 'refused'],
		async run(harness) {
			const chat = await harness.chat()
			const send = sender(harness, await harness.connect())
			const bytes = randomBytes(1000)
			has(harness.platform.next?.refused, 'next.refused', 'refused').call(harness.platform.next)
			const { code } = await harness.errorOf(send(fileFor(chat, bytes), bytes), 'sendFile throws')
			same(code, 'refused', 'the code says that a retry is useless')
			same(await filesIn(chat), [], 'nothing was sent')
		},
	},
]

/** Sends as the gateway does: after an unknown outcome it calls `findFile`, and if that finds nothing, sends again with the same nonce. */
async function sendsOnce(harness: Harness, meanwhile: (live: Live) => Promise<Live>): Promise<void> {
	let live = await harness.connect()
	const chat = await harness.chat()
	await live.connection.send(harness.message(chat, 'here it is'))
	const before = randomBytes(1000)
	await sender(harness, live)(fileFor(chat, before), before)
	const bytes = randomBytes(2000)
	const file = fileFor(chat, bytes)
	const mark = markOf(live.connection, file)
	has(harness.platform.next?.lost, 'next.lost', 'lost').call(harness.platform.next)
	let sent = await sender(harness, live)(file, bytes).catch((error: { code?: unknown }) => {
		same(error.code, undefined, 'an error without a code means that it is unknown whether the message was sent')
	})
	if (!sent) {
		sent = await harness.afterLoss(await meanwhile(live), async (now) => {
			live = now
			return (await now.connection.findFile?.(file, mark)) ?? sender(harness, now)(file, bytes)
		})
	}
	const shown = await filesIn(chat)
	same(shown.length, 2, 'the file is shown once')
	same(shown.at(-1)?.id, sent.id, 'its id is known')
	const another = fileFor(chat, bytes, { after: sent.id })
	const next = await live.connection.findFile?.(another, markOf(live.connection, another))
	same(next, undefined, 'an earlier file is not mistaken for the next one')
}

function sender(harness: Harness, { connection }: Live): Send {
	const send = has(connection.sendFile, 'connection.sendFile', 'sends_files').bind(connection)
	has(harness.adapter.can.files, 'can.files', 'sends_files')
	return send
}

function fileFor({ id, kind }: TestChat, bytes: Uint8Array, more: Partial<OutgoingFile> = {}): OutgoingFile {
	const about = { type: 'file', name: 'notes.bin', media_type: 'application/octet-stream' } as const
	return { chat: { id, kind }, ...about, size: bytes.length, nonce: nonce(), ...more }
}

async function filesIn(chat: TestChat): Promise<ShownMessage[]> {
	return (await chat.shown()).filter(({ file }) => file !== undefined)
}
