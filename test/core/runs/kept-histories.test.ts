/** A thread receives each message of earlier turns once or twice, and always has the history of an order. */
import t from 'tap'
import type { ChatMessage, SentHistory } from '../../../core/protocol.ts'
import { charactersIn, KeptHistories } from '../../../core/runs/kept-histories.ts'

const message = (content: string): ChatMessage => ({ role: 'user', content })
const turn = (about: unknown): ChatMessage[] => [
	message(`question ${about}`),
	{ role: 'assistant', content: `answer ${about}` },
]

/** The thread's side, as in sandbox/serve.ts, with copies of the messages. */
class Thread {
	readonly kept = new Map<number, ChatMessage[]>()
	/** The number of messages received. */
	received = 0

	receive(sent: SentHistory): ChatMessage[] {
		const { id, from, added, forget } = structuredClone(sent)
		for (const one of forget) this.kept.delete(one)
		this.received += added.length
		const known = (id !== undefined && this.kept.get(id)) || []
		if (known.length < from) throw new Error(`${known.length} messages instead of ${from}`)
		const history = [...known.slice(0, from), ...added]
		if (id !== undefined) this.kept.set(id, history)
		return history
	}
}

void t.test('a message is sent once, and is the same object in each later order', async (t) => {
	const [main, thread] = [new KeptHistories(), new Thread()]
	const history: ChatMessage[] = []
	const orders: ChatMessage[][] = []
	for (let at = 0; at < 10; at++) {
		history.push(...turn(at))
		main.send([...history], (sent) => orders.push(thread.receive(sent)))
		t.same(orders.at(-1), history)
	}
	// The first turn is sent twice, since its order may have been the only one of the conversation.
	t.equal(thread.received, history.length + 2)
	t.ok(orders[2]?.every((message, at) => message === orders[9]?.[at]))
})

void t.test('a changed or shortened history arrives unchanged', async (t) => {
	const [main, thread] = [new KeptHistories(), new Thread()]
	const all = Array.from({ length: 8 }, (_, at) => turn(at)).flat()
	const histories = [
		all.slice(0, 8),
		all.slice(0, 8),
		all.slice(0, 4),
		all,
		[...all.slice(0, 6), message('another'), ...all.slice(7)],
		all.slice(4),
		all.slice(4),
		[],
		all,
	]
	for (const history of [...histories, ...histories])
		main.send(history, (sent) => t.same(thread.receive(sent), history))
	t.ok(thread.received < 2 * histories.flat().length)
})

void t.test('each of several threads gets the messages that it lacks', async (t) => {
	const pairs = [0, 1].map(() => ({ main: new KeptHistories(), thread: new Thread() }))
	const history: ChatMessage[] = []
	for (let at = 0; at < 12; at++) {
		history.push(...turn(at))
		const { main, thread } = pairs[at % 2]!
		main.send([...history], (sent) => t.same(thread.receive(sent), history))
	}
	for (const { thread } of pairs) t.ok(thread.received <= history.length + 2)
})

void t.test('kept histories have a limit, and a removed one is sent again', async (t) => {
	const [main, thread] = [new KeptHistories(), new Thread()]
	const conversations = Array.from({ length: 12 }, (_, at) => [message(`${at}`), message(`${at}`.repeat(1024 * 1024))])
	for (const conversation of [0, 1, 2].flatMap(() => conversations)) {
		main.send(conversation, (sent) => t.same(thread.receive(sent), conversation))
		const characters = charactersIn([...thread.kept.values()].flat())
		t.ok(characters < 7 * 1024 * 1024, `${characters} characters`)
	}
	t.ok(thread.received > 4 * 12)
})

void t.test('a history above the limit is kept until another one is sent', async (t) => {
	const [main, thread] = [new KeptHistories(), new Thread()]
	const large = [message('large'), message('x'.repeat(5 * 1024 * 1024))]
	const other = turn('other')
	for (const history of [large, large, large, other, other]) main.send(history, (sent) => void thread.receive(sent))
	t.equal(thread.received, 2 * large.length + 2 * other.length)
	main.send(other, (sent) => void thread.receive(sent))
	t.equal([...thread.kept.values()].flat().length, other.length)
})

void t.test('an order that cannot be posted changes nothing', async (t) => {
	const [main, thread] = [new KeptHistories(), new Thread()]
	const history = [message('one'), message('two')]
	const refuse = (): void => {
		throw new Error('not cloneable')
	}
	t.throws(() => main.send(history, refuse), /not cloneable/)
	for (let n = 0; n < 2; n++) main.send(history, (sent) => t.same(thread.receive(sent), history))
	const longer = [...history, message('three')]
	t.throws(() => main.send(longer, refuse), /not cloneable/)
	main.send(longer, (sent) => t.same(thread.receive(sent), longer))
	t.equal(thread.received, 2 + 2 + 1)
})
