/** What goes out where something goes wrong: said once, or known not to be said. */
import type { ChannelErrorCode, Connection, OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { has, must, nonce, same } from './desk.ts'
import type { Check, Desk } from './desk.ts'

export const sendingOnceChecks: Check[] = [
	{
		name: 'sends once, though the answer was lost',
		needs: ['lost'],
		async run(desk) {
			await sendsOnce(desk, async (live) => live)
		},
	},
	{
		name: 'sends once, though the answer was lost and the gateway died',
		needs: ['lost'],
		async run(desk) {
			await sendsOnce(desk, async (live) => {
				await live.close()
				return desk.connect()
			})
		},
	},
	{
		name: 'takes no other message for the one that was lost',
		needs: ['find'],
		async run(desk) {
			const { connection } = await desk.connect()
			const find = has(connection.find, 'connection.find', 'find').bind(connection)
			const chat = await desk.chat()
			const message = desk.message(chat, 'yes')
			await connection.send(message)
			const next = { ...message, nonce: nonce() }
			const mark = markOf(connection, next)
			same(await find(next, mark), undefined, 'an older message of the same text is not the one')
			await chat.say('yes')
			await desk.heard('yes')
			same(await find(next, mark), undefined, "a person's message of the same text is not the one")
			await connection.send({ ...message, text: 'no', nonce: nonce() })
			same(await find(next, mark), undefined, 'a newer message of another text is not the one')
			same(
				(await chat.shown()).map(({ text }) => text),
				['yes', 'no'],
				'find leaves messages as they are',
			)
		},
	},
	...(['limited', 'failed', 'refused', 'format'] as const).map((code: ChannelErrorCode): Check => ({
		name: `says \`${code}\` where nothing was sent`,
		needs: [code],
		async run(desk) {
			const fault = has(desk.platform.next?.[code], `next.${code}`, code)
			const { connection } = await desk.connect()
			const chat = await desk.chat()
			fault.call(desk.platform.next)
			const error = await desk.errorOf(connection.send(desk.message(chat, 'not now')), 'send throws')
			same(error.code, code, 'the code says what to do next')
			if (code === 'limited') must((error.retry_after_ms ?? 0) > 0, 'retry_after_ms says how long to wait')
			same(await chat.shown(), [], 'nothing was sent')
			const { id } = await connection.send(desk.message(chat, 'now'))
			same(
				(await chat.shown()).map((one) => one.id),
				[id],
				'the next message goes out',
			)
		},
	})),
]

/** As the gateway sends: after an unknown outcome it asks `find`, and sends again with the same nonce where that knows nothing. */
async function sendsOnce(
	desk: Desk,
	meanwhile: (live: Awaited<ReturnType<Desk['connect']>>) => ReturnType<Desk['connect']>,
) {
	const live = await desk.connect()
	const chat = await desk.chat()
	const before = await live.connection.send(desk.message(chat, 'the one before'))
	const message = desk.message(chat, 'just once')
	const mark = markOf(live.connection, message)
	const lose = has(desk.platform.next?.lost, 'next.lost', 'lost')
	lose.call(desk.platform.next)
	let sent = await live.connection.send(message).catch((error: { code?: unknown }) => {
		same(error.code, undefined, 'an error without a code means that it is unknown whether the message was sent')
	})
	if (!sent) {
		sent = await desk.afterLoss(
			await meanwhile(live),
			async ({ connection }) => (await connection.find?.(message, mark)) ?? connection.send(message),
		)
	}
	const ids = (await chat.shown()).map(({ id }) => id)
	same(ids, [before.id, sent.id], 'the message shows once, and its id is known')
}

export function markOf(connection: Connection, { chat }: Pick<OutgoingMessage, 'chat'>): string | undefined {
	const mark = connection.mark?.(chat)
	must(mark === undefined || (typeof mark === 'string' && mark.length <= 256), 'a mark has at most 256 characters')
	return mark
}
