import { wireName } from './wire-name.ts'
import type { ChatMessage, ModelAnswer, RunOrder, Step, ToolCallRequest, ToolSpec } from '../core/protocol.ts'
import { withoutOwnTags } from './context/own-tags.ts'
import type { ModelRequest, Turn } from './models/provider.ts'
import { inOrderOfCalls, messageOf, withCalls } from './context/step-messages.ts'

/** The request for the models of an order after the given steps. */
export function requestOf(order: RunOrder, journal: readonly Step[]): ModelRequest {
	const turns = conversationOf(order, journal)
	const { system, form } = order
	const asked = { system, ...(form && { form }) }
	if (order.models.every(({ kind }) => kind === 'offline')) return { ...asked, turns, tools: order.tools }
	const { inText, tools } = named(order.tools)
	return {
		...asked,
		// Errors of tools may name another tool that helps.
		turns: turns.map((turn) => (turn.role === 'tool' && !turn.ok ? { ...turn, content: inText(turn.content) } : turn)),
		tools,
	}
}

interface NamedTools {
	/** Their descriptions have the names that a model sees. */
	tools: ToolSpec[]
	/** Replaces names in the same way. */
	inText(text: string): string
}

const namedTools = new WeakMap<ToolSpec[], NamedTools>()

/** Computed once for each list. */
function named(tools: ToolSpec[]): NamedTools {
	let known = namedTools.get(tools)
	if (!known) {
		const inText = namesIn(tools)
		known = { inText, tools: tools.map((tool) => ({ ...tool, description: inText(tool.description) })) }
		namedTools.set(tools, known)
	}
	return known
}

/** Replaces the names of tools in a text by those that a model sees. */
function namesIn(tools: readonly ToolSpec[]): (text: string) => string {
	const dotted = tools.map(({ name }) => name).filter((name) => name.includes('.'))
	if (dotted.length === 0) return (text) => text
	const names = new RegExp(`(?<![\\w.])(?:${dotted.map((name) => RegExp.escape(name)).join('|')})(?![\\w])`, 'g')
	return (text) => text.replace(names, wireName)
}

const CONTINUE =
	'nothing was said after your answer. Unless the instructions ask for something else, continue exactly where it ended, and repeat nothing.'
const IN_FORM = 'nothing was said after your answer. Give it again in the form that the instructions require.'

/** The whole conversation after the given steps: earlier turns, the prompt, and the steps of the run. */
function conversationOf(order: RunOrder, journal: readonly Step[]): Turn[] {
	const turns: Turn[] = order.history.map(turnOf)
	if (order.about !== undefined) turns.push({ role: 'user', content: order.about })
	const { prompt, attachments } = order
	turns.push(
		turnOf({ role: 'user', content: prompt, ...(attachments && { attachments }) }),
		...(order.since ?? []).map(turnOf),
	)
	// Some providers refuse a request that ends with an answer; others treat it as the beginning of the next one, or as complete.
	if (turns.at(-1)?.role === 'assistant') addRemark(turns, order.form ? IN_FORM : CONTINUE)
	const names = new Map<string, string>()
	for (const step of inOrderOfCalls(journal)) {
		if (step.kind === 'remark') addRemark(turns, step.content)
		else turns.push(messageOf(step, names))
	}
	return turns
}

/** Appends a remark to the latest result, if there is one: some providers accept no other message after it. */
export function addRemark(turns: Turn[], content: string): void {
	const text = `[Remark of the gateway: ${content}]`
	const last = turns.at(-1)
	if (last?.role === 'tool') turns[turns.length - 1] = { ...last, content: `${last.content}\n\n${text}` }
	else turns.push({ role: 'user', content: text })
}

/** Escapes the gateway's tags, so that users cannot imitate them. */
function turnOf(message: ChatMessage): Turn {
	if (message.role === 'assistant') return withCalls(message)
	if (message.role === 'tool') return message
	const content = withoutOwnTags(message.content)
	return content === message.content ? message : { ...message, content }
}

/**
 * Splits an answer that calls a tool of the client into the part with which the run continues and the part with which it then
 * ends. The second part is emitted as a separate answer, so that each call is followed by its result.
 */
export function splitCalls(
	answer: ModelAnswer,
	{ client_tools = [], one_call }: Pick<RunOrder, 'client_tools' | 'one_call'>,
): { own: ModelAnswer; last?: ModelAnswer } {
	const isForClient = ({ name }: ToolCallRequest): boolean => client_tools.includes(name)
	const clientCalls = answer.tool_calls.filter(isForClient).slice(0, one_call ? 1 : undefined)
	if (clientCalls.length === 0) return { own: answer }
	const own = { ...answer, tool_calls: answer.tool_calls.filter((call) => !isForClient(call)) }
	if (own.tool_calls.length === 0) return { own, last: { ...answer, tool_calls: clientCalls } }
	const usage = { input_tokens: 0, output_tokens: 0 } // counted with the first part
	const { provider, model, finish_reason } = answer
	return { own, last: { content: '', tool_calls: clientCalls, usage, provider, model, finish_reason } }
}

/** Makes call ids unique in the run, so that a result identifies its call: some servers restart their numbering in every answer. */
export function withUniqueIds(
	calls: ToolCallRequest[],
	journal: readonly Step[],
	since: readonly ChatMessage[] = [],
): ToolCallRequest[] {
	const taken = new Set<string>()
	let answers = 0
	const take = (made: readonly ToolCallRequest[]): void => {
		answers++
		for (const call of made) taken.add(call.id)
	}
	for (const message of since) if (message.role === 'assistant') take(message.tool_calls ?? [])
	for (const step of journal) if (step.kind === 'model') take(step.answer.tool_calls)
	return calls.map((call, at) => {
		let { id } = call
		if (id === '') id = `call_${answers + 1}_${at + 1}`
		for (let n = 2; taken.has(id); n++) id = `${call.id || 'call'}_${answers + 1}_${at + 1}${n > 2 ? `_${n}` : ''}`
		taken.add(id)
		return id === call.id ? call : { ...call, id }
	})
}
