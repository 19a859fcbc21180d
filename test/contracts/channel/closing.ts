/** Checks of broken connections, a revoked token, and `close`. */
import type { ChannelError } from '../../../plugins/channels/adapter.ts'
import { has, must, same } from './harness.ts'
import type { Check, Harness } from './harness.ts'

export const closingChecks: Check[] = [
	{
		name: 'reconnects after a cut, or reports the loss',
		async run(harness) {
			const live = await harness.keepConnected()
			const chat = await harness.chat()
			for (const round of [1, 2, 3]) {
				await chat.say(`before cut ${round}`)
				if (round > 1) await harness.waitForMessage(`before cut ${round}`)
				harness.platform.cut()
				await chat.say(`during cut ${round}`)
				await harness.waitForMessage(`during cut ${round}`)
				await chat.say(`after cut ${round}`)
				await harness.waitForMessage(`after cut ${round}`)
			}
			const order = harness.taken.map(({ text }) => text)
			const wanted = [1, 2, 3].flatMap((round) => ['before', 'during', 'after'].map((when) => `${when} cut ${round}`))
			same(order.toSorted(), wanted.toSorted(), 'messages sent around a cut arrive, and nothing else')
			await live().connection.send(harness.message(chat, 'still here'))
			same(
				(await chat.shown()).map(({ text }) => text),
				['still here'],
				'messages can be sent after a cut',
			)
		},
	},
	{
		name: 'reports a revoked token',
		needs: ['revoke'],
		async run(harness) {
			const revoke = has(harness.platform.revoke, 'revoke', 'revoke')
			const live = await harness.connect()
			revoke.call(harness.platform)
			const error = await harness.within(live.lost.promise, '`lost` is called when the token is revoked')
			if ((error as Partial<ChannelError>).code === 'refused') return
			await live.close()
			const { code } = await harness.errorOf(harness.connect(), 'connect throws when the token is revoked')
			same(code, 'refused', 'one of the two is `refused`; otherwise the gateway retries forever')
		},
	},
	{
		name: 'does not give up a message because the token is revoked',
		needs: ['revoke'],
		async run(harness) {
			const revoke = has(harness.platform.revoke, 'revoke', 'revoke')
			const live = await harness.connect()
			const chat = await harness.chat()
			let isLost = false
			void live.lost.promise.then(() => (isLost = true))
			revoke.call(harness.platform)
			const error = await live.connection.send(harness.message(chat, 'hello')).then(
				() => undefined,
				(thrown: Partial<ChannelError>) => thrown,
			)
			must(
				error?.code !== 'refused' || isLost,
				'`lost` is called before `send` throws `refused` for a revoked token; otherwise the gateway drops the message',
			)
		},
	},
	{
		name: 'releases everything when it is closed',
		async run(harness) {
			const before = await stableHandles()
			const live = await harness.connect()
			const chat = await harness.chat()
			await chat.say('hello')
			await harness.waitForMessage('hello')
			await live.connection.send(harness.message(chat, 'hello'))
			await live.connection.typing?.({ id: chat.id })
			await live.close()
			await nothingIsLeft(harness, before)
		},
	},
	{
		name: 'releases everything after it was lost',
		async run(harness) {
			const before = await stableHandles()
			const live = await harness.connect()
			const chat = await harness.chat()
			harness.take = () => {
				throw new Error('no space is left')
			}
			await chat.say('hello')
			await harness.within(live.lost.promise, '`lost` is called when receive throws')
			await live.close()
			await nothingIsLeft(harness, before)
		},
	},
	{
		name: 'closes while a message is being sent',
		needs: ['stalled'],
		async run(harness) {
			const stall = has(harness.platform.next?.stalled, 'next.stalled', 'stalled')
			const before = await stableHandles()
			const live = await harness.connect()
			const chat = await harness.chat()
			const listening = harness.platform.open()
			stall.call(harness.platform.next)
			const sending = live.connection.send(harness.message(chat, 'hello')).catch(() => {})
			await harness.until(
				() => harness.platform.open() > listening,
				'send contacts the platform, and open() counts its request',
			)
			await live.close()
			await harness.within(sending, 'send settles when the connection is closed')
			await nothingIsLeft(harness, before)
		},
	},
	{
		name: 'is silent once it is closed',
		async run(harness) {
			const old = await harness.connect()
			const chat = await harness.chat()
			await chat.say('first')
			await harness.waitForMessage('first')
			const told = harness.told.length
			await old.close()
			await harness.connect()
			await chat.say('second')
			await harness.waitForMessage('second') // by the new connection
			const lines = harness.told
				.slice(told)
				.filter((line) => line.startsWith('lost') || line.startsWith('reconnecting'))
			same(lines, [], 'a closed connection reports nothing')
			const texts = harness.received.map(({ text }) => text)
			same(texts.filter((text) => text === 'second').length, 1, 'only the new connection receives')
		},
	},
	{
		name: 'keeps the connections of several channels apart',
		async run(harness) {
			const one = await harness.connect()
			const other = await harness.connectElsewhere()
			const chat = await harness.chat()
			const elsewhere = await other.harness.chat()
			await chat.say('here')
			await elsewhere.say('there')
			await harness.waitForMessage('here')
			await other.harness.waitForMessage('there')
			await one.close()
			await elsewhere.say('still there')
			await other.harness.waitForMessage('still there')
			await other.live.connection.send(other.harness.message(elsewhere, 'and I am'))
			same(
				(await elsewhere.shown()).map(({ text }) => text),
				['and I am'],
				'the other channel continues to send',
			)
			same(
				harness.received.map(({ text }) => text),
				['here'],
				'a channel receives only its own messages',
			)
		},
	},
]

/** The resources that keep this process alive. */
function handles(): string[] {
	return process.getActiveResourcesInfo().toSorted()
}

/** The same, without resources of earlier checks that are about to be released. */
async function stableHandles(): Promise<string[]> {
	let found = handles()
	for (let i = 0; i < 5; i++) {
		await new Promise((resolve) => setTimeout(resolve, 10))
		const now = handles()
		found = found.filter((handle) => removeFrom(now, handle))
	}
	return found
}

async function nothingIsLeft(harness: Harness, before: string[]): Promise<void> {
	await harness.until(() => harness.platform.open() === 0, 'after close nothing is open at the platform')
	harness.platform.cut() // idle connections
	let left: string[] = []
	const isClean = (): boolean => {
		left = handles()
		for (const handle of before) removeFrom(left, handle)
		return left.length === 0
	}
	await harness.until(isClean, 'after close no timer and no socket is left').catch((error: Error) => {
		throw new Error(`${error.message}: ${left.join(', ')}`)
	})
	must(harness.platform.open() === 0, 'after close nothing is opened again')
}

/** Removes the first occurrence from a list. False if there is none. */
function removeFrom(list: string[], one: string): boolean {
	const at = list.indexOf(one)
	if (at >= 0) list.splice(at, 1)
	return at >= 0
}
