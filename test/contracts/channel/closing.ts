/** Cuts, a token that is taken back, and the end. */
import type { ChannelError } from '../../../plugins/channels/adapter.ts'
import { has, must, same } from './desk.ts'
import type { Check, Desk } from './desk.ts'

export const closingChecks: Check[] = [
	{
		name: 'comes back after a cut, or says that it is lost',
		async run(desk) {
			const live = await desk.keepConnected()
			const chat = await desk.chat()
			for (const round of [1, 2, 3]) {
				await chat.say(`before cut ${round}`)
				if (round > 1) await desk.heard(`before cut ${round}`)
				desk.platform.cut()
				await chat.say(`during cut ${round}`)
				await desk.heard(`during cut ${round}`)
				await chat.say(`after cut ${round}`)
				await desk.heard(`after cut ${round}`)
			}
			const order = desk.taken.map(({ text }) => text)
			const wanted = [1, 2, 3].flatMap((round) => ['before', 'during', 'after'].map((when) => `${when} cut ${round}`))
			same(order.toSorted(), wanted.toSorted(), 'messages sent around a cut arrive, and nothing else')
			await live().connection.send(desk.message(chat, 'still here'))
			same(
				(await chat.shown()).map(({ text }) => text),
				['still here'],
				'and what is sent goes out',
			)
		},
	},
	{
		name: 'is lost where its token is taken back',
		needs: ['revoke'],
		async run(desk) {
			const revoke = has(desk.platform.revoke, 'revoke', 'revoke')
			const live = await desk.connect()
			revoke.call(desk.platform)
			const error = await desk.within(live.lost.promise, '`lost` is called where the token is taken back')
			if ((error as Partial<ChannelError>).code === 'refused') return
			await live.close()
			const { code } = await desk.errorOf(desk.connect(), 'connect throws where the token is taken back')
			same(code, 'refused', 'one of the two is `refused`; otherwise the gateway retries forever')
		},
	},
	{
		name: 'gives everything back when it is closed',
		async run(desk) {
			const before = await calmHandles()
			const live = await desk.connect()
			const chat = await desk.chat()
			await chat.say('hello')
			await desk.heard('hello')
			await live.connection.send(desk.message(chat, 'hello'))
			await live.connection.typing?.({ id: chat.id })
			await live.close()
			await nothingIsLeft(desk, before)
		},
	},
	{
		name: 'gives everything back after it was lost',
		async run(desk) {
			const before = await calmHandles()
			const live = await desk.connect()
			const chat = await desk.chat()
			desk.take = () => {
				throw new Error('no space is left')
			}
			await chat.say('hello')
			await desk.within(live.lost.promise, '`lost` is called where receive throws')
			await live.close()
			await nothingIsLeft(desk, before)
		},
	},
	{
		name: 'closes while a message is on its way',
		needs: ['stalled'],
		async run(desk) {
			const stall = has(desk.platform.next?.stalled, 'next.stalled', 'stalled')
			const before = await calmHandles()
			const live = await desk.connect()
			const chat = await desk.chat()
			const listening = desk.platform.open()
			stall.call(desk.platform.next)
			const sending = live.connection.send(desk.message(chat, 'hello')).catch(() => {})
			await desk.until(
				() => desk.platform.open() > listening,
				'send talks to the platform, and open() counts its request',
			)
			await live.close()
			await desk.within(sending, 'send settles when the connection is closed')
			await nothingIsLeft(desk, before)
		},
	},
	{
		name: 'is silent once it is closed',
		async run(desk) {
			const old = await desk.connect()
			const chat = await desk.chat()
			await chat.say('first')
			await desk.heard('first')
			const told = desk.told.length
			await old.close()
			await desk.connect()
			await chat.say('second')
			await desk.heard('second') // by the new connection
			const lines = desk.told.slice(told).filter((line) => line.startsWith('lost') || line.startsWith('reconnecting'))
			same(lines, [], 'a closed connection reports nothing')
			const texts = desk.received.map(({ text }) => text)
			same(texts.filter((text) => text === 'second').length, 1, 'only the new connection receives')
		},
	},
	{
		name: 'keeps the connections of several channels apart',
		async run(desk) {
			const one = await desk.connect()
			const other = await desk.connectElsewhere()
			const chat = await desk.chat()
			const elsewhere = await other.desk.chat()
			await chat.say('here')
			await elsewhere.say('there')
			await desk.heard('here')
			await other.desk.heard('there')
			await one.close()
			await elsewhere.say('still there')
			await other.desk.heard('still there')
			await other.live.connection.send(other.desk.message(elsewhere, 'and I am'))
			same(
				(await elsewhere.shown()).map(({ text }) => text),
				['and I am'],
				'the other channel sends on',
			)
			same(
				desk.received.map(({ text }) => text),
				['here'],
				'a channel receives what is its own',
			)
		},
	},
]

/** What keeps this process alive. */
function handles(): string[] {
	return process.getActiveResourcesInfo().toSorted()
}

/** The same, without what an earlier check has given back and what takes a moment to go. */
async function calmHandles(): Promise<string[]> {
	let found = handles()
	for (let i = 0; i < 5; i++) {
		await new Promise((resolve) => setTimeout(resolve, 10))
		const now = handles()
		found = found.filter((handle) => takeOut(now, handle))
	}
	return found
}

async function nothingIsLeft(desk: Desk, before: string[]): Promise<void> {
	await desk.until(() => desk.platform.open() === 0, 'after close nothing is open at the platform')
	desk.platform.cut() // connections that only wait to be used again
	let left: string[] = []
	const isClean = (): boolean => {
		left = handles()
		for (const handle of before) takeOut(left, handle)
		return left.length === 0
	}
	await desk.until(isClean, 'after close no timer and no socket is left').catch((error: Error) => {
		throw new Error(`${error.message}: ${left.join(', ')}`)
	})
	must(desk.platform.open() === 0, 'after close nothing is opened again')
}

/** Takes one of them out of a list. False where there is none. */
function takeOut(list: string[], one: string): boolean {
	const at = list.indexOf(one)
	if (at >= 0) list.splice(at, 1)
	return at >= 0
}
