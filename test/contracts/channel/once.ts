/** Checks of sending when something fails: a message is sent exactly once, or known not to be sent. */
import type { ChannelErrorCode, Connection, OutgoingMessage } from '../../../plugins/channels/adapter.ts'
import { has, must, nonce, same } from './harness.ts'
import type { Check, Harness } from './harness.ts'

export const sendingOnceChecks: Check[] = [
	{
		name: 'sends once although the answer was lost',
		needs: ['lost'],
		async run(harness) {
			await sendsOnce(harness, async (live) => live)
		},
	},
	{
		name: 'sends once although the answer was lost and the gateway was killed',
		needs: ['lost'],
		async run(harness) {
			await sendsOnce(harness, async (live) => {
				await live.close()
				return harness.connect()
			})
		},
	},
	{
		name: 'does not mistake another message for the lost one',
		needs: ['find'],
		async run(harness) {
			const { connection } = await harness.connect()
			const find = has(connection.find, 'connection.find', 'find').bind(connection)
			const chat = await harness.chat()
			const message = harness.message(chat, 'yes')
			await connection.send(message)
			const next = { ...message, nonce: nonce() }
			const mark = markOf(connection, next)
			same(await find(next, mark), undefined, 'an older message with the same text is not found')
			await chat.say('yes')
			await harness.waitForMessage('yes')
			same(await find(next, mark), undefined, "a person's message with the same text is not found")
			await connection.send({ ...message, text: 'no', nonce: nonce() })
			same(await find(next, mark), undefined, 'a newer message with another text is not found')
			same(
				(await chat.shown()).map(({ text }) => text),
				['yes', 'no'],
				'find changes no messages',
			)
		},
	},
	...(['limited', 'failed', 'refused', 'format'] as const).map((code: ChannelErrorCode): Check => ({
		name: `reports \`${code}\` if nothing was sent`,
		needs: [code],
		async run(harness) {
			const fault = has(harness.platform.next?.[code], `next.${code}`, code)
			const { connection } = await harness.connect()
			const chat = await harness.chat()
			fault.call(harness.platform.next)
			const error = await harness.errorOf(connection.send(harness.message(chat, 'not now')), 'send throws')
			same(error.code, code, 'the code says what to do next')
			if (code === 'limited') must((error.retry_after_ms ?? 0) > 0, 'retry_after_ms says how long to wait')
			same(await chat.shown(), [], 'nothing was sent')
			const { id } = await connection.send(harness.message(chat, 'now'))
			same(
				(await chat.shown()).map((one) => one.id),
				[id],
				'the next message goes out',
			)
		},
	})),
]

/** Sends as the gateway does: after an unknown outcome it calls `find`, and if that finds nothing, sends again with the same nonce. */
async function sendsOnce(
	harness: Harness,
	meanwhile: (live: Awaited<ReturnType<Harness['connect']>>) => ReturnType<Harness['connect']>,
) {
	const live = await harness.connect()
	const chat = await harness.chat()
	const before = await live.connection.send(harness.message(chat, 'the one before'))
	const message = harness.message(chat, 'just once')
	const mark = markOf(live.connection, message)
	const lose = has(harness.platform.next?.lost, 'next.lost', 'lost')
	lose.call(harness.platform.next)
	let sent = await live.connection.send(message).catch((error: { code?: unknown }) => {
		same(error.code, undefined, 'an error without a code means that it is unknown whether the message was sent')
	})
	if (!sent) {
		sent = await harness.afterLoss(
			await meanwhile(live),
			async ({ connection }) => (await connection.find?.(message, mark)) ?? connection.send(message),
		)
	}
	const ids = (await chat.shown()).map(({ id }) => id)
	same(ids, [before.id, sent.id], 'the message is shown once, and its id is known')
}

export function markOf(connection: Connection, { chat }: Pick<OutgoingMessage, 'chat'>): string | undefined {
	const mark = connection.mark?.(chat)
	must(mark === undefined || (typeof mark === 'string' && mark.length <= 256), 'a mark has at most 256 characters')
	return mark
}
