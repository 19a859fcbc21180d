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
import { openLink } from './link.ts'
import type { Link, OpenLink } from './link.ts'

/** Executes one run. Without an outcome, main takes the run for lost. */
export type Execute = (order: RunOrder, link: Link) => Promise<RunOutcome | undefined>

/** Serves runs until main closes the port. An abort that was posted before the thread took a run arrives before it begins. */
export function serve(port: MessagePort, execute: Execute): Promise<void> {
	const links = new Map<number, OpenLink>()
	/** Lists of tools, by id: what is computed of one is kept for all runs that have it. */
	const tools = new Map<number, ToolSpec[]>()
	/** Messages of earlier turns, likewise. */
	const histories = new Map<number, ChatMessage[]>()
	let unsent: FromThread = []

	/**
	 * What all runs say in one turn of the event loop goes as one message: the main thread spends more on each than on what is in
	 * it. A run alone does not wait for the end of the turn, so that the main thread is awake when the answer is complete.
	 */
	const post = (run: number, message: ToMain): void => {
		unsent.push({ run, message })
		if (unsent.length === 1) queueMicrotask(() => (links.size > 1 ? void setImmediate(send) : send()))
	}
	const send = (): void => {
		const said = unsent
		unsent = []
		port.postMessage(said)
	}

	/** Returns what begins the run that the message brings. */
	const receive = ({ run, message }: ToThread): (() => void) | undefined => {
		if (message.kind !== 'order') {
			links.get(run)?.receive(message)
			return undefined
		}
		const { id, list, forget } = message.tools
		if (list) tools.set(id, list)
		if (forget !== undefined) tools.delete(forget)
		const link = openLink((said) => post(run, said))
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
			const begins = [receive(first)]
			for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
				begins.push(receive(next.message as ToThread))
			for (const begin of begins) begin?.()
		})
		port.on('close', () => {
			for (const link of links.values()) link.receive({ kind: 'abort', reason: 'the main thread released the run' })
			resolve()
		})
	})
}

/** The messages of an order, after `kept` was brought up to date. */
function historyOf({ id, from, added, forget }: SentHistory, kept: Map<number, ChatMessage[]>): ChatMessage[] {
	for (const one of forget) kept.delete(one)
	const known = (id !== undefined && kept.get(id)) || []
	if (known.length < from)
		throw new Error(`the thread has ${known.length} messages of earlier turns instead of ${from}`)
	const history = known.slice(0, from).concat(added)
	if (id !== undefined) kept.set(id, history)
	return history
}
