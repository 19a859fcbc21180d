/** A thread is sent each message of earlier turns once, and always has those that an order refers to. */
import t from 'tap'
import type { ChatMessage, SentHistory } from '../../../core/protocol.ts'
import { charactersOf, KeptMessages } from '../../../core/runs/kept-messages.ts'

const said = (content: string): ChatMessage => ({ role: 'user', content })

/** The thread's side, as in sandbox/serve.ts, with copies of what it gets. */
class Thread {
	readonly kept = new Map<number, ChatMessage>()
	/** Messages that came whole. */
	received = 0

	take(sent: SentHistory): ChatMessage[] {
		const { messages, keep, forget } = structuredClone(sent)
		for (const number of forget) this.kept.delete(number)
		for (const [number, message] of keep) this.kept.set(number, message)
		this.received += keep.length
		return messages.map((one) => {
			if (typeof one !== 'number') {
				this.received++
				return one
			}
			const message = this.kept.get(one)
			if (!message) throw new Error(`message ${one} is missing`)
			return message
		})
	}
}

void t.test('a message is sent twice at most, and then is the same object in each order', async (t) => {
	const [main, thread] = [new KeptMessages(), new Thread()]
	const history: ChatMessage[] = []
	const orders: ChatMessage[][] = []
	for (let turn = 0; turn < 10; turn++) {
		history.push(said(`question ${turn}`), { role: 'assistant', content: `answer ${turn}` })
		main.send(history, (sent) => orders.push(thread.take(sent)))
		t.same(orders.at(-1), history)
	}
	t.equal(thread.received, 2 * history.length - 2)
	t.ok(orders[2]?.slice(0, 2).every((message, at) => message === orders[9]?.[at]))
})

void t.test('what is kept has a bound, and what was removed is sent again', async (t) => {
	const [main, thread] = [new KeptMessages(), new Thread()]
	const conversations = Array.from({ length: 12 }, (_, at) => [said(`${at}`.repeat(1024 * 1024)), said(`${at}`)])
	for (const conversation of [0, 1, 2].flatMap(() => conversations)) {
		main.send(conversation, (sent) => t.same(thread.take(sent), conversation))
		const characters = [...thread.kept.values()].reduce((sum, message) => sum + charactersOf(message), 0)
		t.ok(characters < 7 * 1024 * 1024, `${characters} characters`)
	}
	t.ok(thread.received > 4 * 12)
})

void t.test('an order that cannot be posted changes nothing', async (t) => {
	const [main, thread] = [new KeptMessages(), new Thread()]
	const history = [said('one'), said('two')]
	for (let time = 0; time < 2; time++)
		t.throws(
			() =>
				main.send(history, () => {
					throw new Error('not cloneable')
				}),
			/not cloneable/,
		)
	main.send(history, (sent) => t.same(thread.take(sent), history))
	main.send(history, (sent) => t.same(thread.take(sent), history))
	t.equal(thread.received, 2)
})
