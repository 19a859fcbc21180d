/**
 * The built-in model that answers if none is configured: deterministic and without network. It says what it is.
 *
 * A prompt line `/tool NAME {json}` calls that tool; several lines are called one after another, one per answer. Other prompts are
 * answered with recalled memories, or echoed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { excerpt } from '../../core/util/excerpt.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { findTool } from '../wire-name.ts'
import type { ModelAnswer } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { inWords } from '../attachments/words.ts'
import { failed } from './provider.ts'
import type { AskIo, ModelReply, ModelRequest, Provider, Turn } from './provider.ts'
import { estimateUsage } from './usage.ts'

export const offline: Provider = { ask }

async function ask(order: ModelOrder, request: ModelRequest, { signal, onText }: AskIo): Promise<ModelReply> {
	const { content, tool_calls } = answer(request)
	for (const word of content.match(/\S+\s*|\s+/g) ?? []) {
		if (signal.aborted) return failed('model_interrupted', 'the call was aborted')
		onText(word)
		await nextTurn()
	}
	const { provider, model } = order
	const usage = estimateUsage(request, content + tool_calls.map((call) => call.arguments).join(''))
	const finish_reason = tool_calls.length > 0 ? 'tool_calls' : 'stop'
	return { status: 'answered', answer: { content, tool_calls, usage, provider, model, finish_reason } }
}

type OfflineReply = Pick<ModelAnswer, 'content' | 'tool_calls'>

function answer({ turns: said, tools }: ModelRequest): OfflineReply {
	const turns = said.map(inWords)
	const asked = turns.findLastIndex((turn) => turn.role === 'user')
	const prompt = turns[asked]?.content ?? ''
	const since = turns.slice(asked + 1)
	const results = since.filter((turn) => turn.role === 'tool')
	const answers = since.length - results.length
	const lines = toolLines(prompt)

	const line = lines[answers]
	// An unknown name is kept, so that the gateway answers that there is no such tool.
	if (line) return call(findTool(tools, line.name)?.name ?? line.name, line.arguments, answers)
	if (lines.length > 0) return say(report(results))
	if (answers === 0 && tools.some((tool) => tool.name === RECALL)) {
		return call(RECALL, JSON.stringify({ query: excerpt(prompt, QUERY_LIMIT) }), answers)
	}
	const memories = results.flatMap((result) => (result.ok ? memoriesIn(result.content) : []))
	return say(memories.length > 0 ? recall(memories) : echo(prompt))
}

const RECALL = 'memory.recall'
const QUERY_LIMIT = 1_000
const ECHO_LIMIT = 2_000
const MEMORY_LIMIT = 5

/** A name may contain spaces, like that of a skill: it ends at the first `{` or at the end of the line. */
function toolLines(prompt: string): { name: string; arguments: string }[] {
	return prompt.split('\n').flatMap((line) => {
		const [word, rest] = [line.trimStart().slice(0, 5), line.trimStart().slice(5)]
		if (word !== '/tool' || rest.trimStart() === rest) return []
		const brace = rest.indexOf('{')
		const name = (brace < 0 ? rest : rest.slice(0, brace)).trim()
		return name === '' ? [] : [{ name, arguments: brace < 0 ? '{}' : rest.slice(brace).trim() }]
	})
}

function call(name: string, args: string, answers: number): OfflineReply {
	return { content: '', tool_calls: [{ id: `offline_${answers + 1}`, name, arguments: args }] }
}

function say(content: string): OfflineReply {
	return { content, tool_calls: [] }
}

function report(results: Extract<Turn, { role: 'tool' }>[]): string {
	return results.map(({ name, ok, content }) => `${name} ${ok ? 'answered' : 'failed'}: ${content}`).join('\n')
}

function recall(memories: string[]): string {
	return ['From memory:', ...memories.slice(0, MEMORY_LIMIT).map((memory) => `- ${memory}`)].join('\n')
}

function echo(prompt: string): string {
	return (
		`The built-in offline provider received: ${excerpt(prompt, ECHO_LIMIT)}\n\n` +
		'It needs no network and understands no language; a line such as /tool memory.stm_read {} calls a tool. ' +
		'To connect a real model, run "svc init", which writes it to providers in gateway.yaml, ' +
		'or start the gateway with OPENAI_API_KEY set.'
	)
}

/**
 * The memories in a result, without those that match far less than the best one. A result is a list of memories, or an object with
 * such a list; each memory has `content` and may have `similarity`.
 */
function memoriesIn(result: string): string[] {
	const value = jsonIn(result)
	if (typeof value !== 'object' || value === null) return []
	const list: unknown = Array.isArray(value) ? value : Object.values(value).find(Array.isArray)
	if (!Array.isArray(list)) return []
	const memories = list.filter(isMemory)
	const best = Math.max(...memories.map(({ similarity = 0 }) => similarity))
	return memories.filter(({ similarity = best }) => similarity >= best / 2).map(({ content }) => content)
}

function isMemory(value: unknown): value is { content: string; similarity?: number } {
	const { content, similarity = 0 } = Object(value) as { content?: unknown; similarity?: unknown }
	return typeof content === 'string' && typeof similarity === 'number'
}
