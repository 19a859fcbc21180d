/** The worker's end of the protocol: all runs of a thread, over one MessagePort. */
import { receiveMessageOnPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type {
	ChatMessage,
	FromThread,
	RunOrder,
	RunOutcome,
	SentHistory,
	ToMain,
	ToolSpec,
	ToThread,
} from '../core/protocol.ts'
import { TransientMap } from '../core/util/transient-map.ts'
import { openLink } from './link.ts'
import type { Link, OpenLink } from './link.ts'

/** Executes one run. Without an outcome, the main thread treats the run as lost. */
export type Execute = (order: RunOrder, link: Link) => Promise<RunOutcome | undefined>

/** Serves runs until the main thread closes the port. An abort that was posted before a run started arrives before it starts. */
export function serve(port: MessagePort, execute: Execute): Promise<void> {
	const links = new TransientMap<number, OpenLink>()
	/** Lists of tools, by id. Runs share the objects, because results computed from them are cached by object. */
	const tools = new Map<number, ToolSpec[]>()
	/** Messages of earlier turns, shared in the same way. */
	const histories = new Map<number, ChatMessage[]>()
	let unsent: FromThread = []

	/**
	 * The messages of all runs in one turn of the event loop are posted together: for the main thread, receiving a message costs more
	 * than its content. A single run does not wait for the end of the turn, so that the main thread is awake when the answer is
	 * complete.
	 */
	const post = (run: number, message: ToMain): void => {
		unsent.push({ run, message })
		if (unsent.length === 1) queueMicrotask(() => (links.size > 1 ? void setImmediate(send) : send()))
	}
	const send = (): void => {
		const messages = unsent
		unsent = []
		port.postMessage(messages)
	}

	/** Returns a function that starts the run, if the message is an order. */
	const receive = ({ run, message }: ToThread): (() => void) | undefined => {
		if (message.kind !== 'order') {
			links.get(run)?.receive(message)
			return undefined
		}
		const { id, list, forget } = message.tools
		if (list) tools.set(id, list)
		if (forget !== undefined) tools.delete(forget)
		const link = openLink((sent) => post(run, sent))
		links.set(run, link)
		const order = { ...message.order, tools: tools.get(id) ?? [], history: historyOf(message.history, histories) }
		return () => {
			const end = (outcome?: RunOutcome): void => {
				links.delete(run)
				link.end(outcome ?? null)
			}
			execute(order, link).then(end, () => end())
		}
	}

	return new Promise((resolve) => {
		port.on('message', (first: ToThread) => {
			const starts = [receive(first)]
			for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
				starts.push(receive(next.message as ToThread))
			for (const start of starts) start?.()
		})
		port.on('close', () => {
			for (const link of links.values()) link.receive({ kind: 'abort', reason: 'the main thread released the run' })
			resolve()
		})
	})
}

/** Updates `kept` and returns the messages of an order. */
function historyOf({ id, from, added, forget }: SentHistory, kept: Map<number, ChatMessage[]>): ChatMessage[] {
	for (const old of forget) kept.delete(old)
	const known = (id !== undefined && kept.get(id)) || []
	if (known.length < from)
		throw new Error(`the thread has ${known.length} messages of earlier turns instead of ${from}`)
	const history = known.slice(0, from).concat(added)
	if (id !== undefined) kept.set(id, history)
	return history
}
