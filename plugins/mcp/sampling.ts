/**
 * Requests of servers to the agent's model (sampling in the protocol). Each is a child of the run that called the server. It
 * counts towards the usage and the limits of the agent and of its parent, and ends with its parent. It uses the agent's model, but
 * not its persona, history or tools.
 */
import type { CreateMessageRequestParams, CreateMessageResult } from '@modelcontextprotocol/sdk/types.js'
import { Fault } from '../../core/errors.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import type { Runs } from '../runs/contract.ts'
import type { McpSettings } from './contract.ts'
import { isObject } from '../../core/util/is-object.ts'

/**
 * Answers a request of `server` during `call`. Throws `invalid_request` for requests that are not supported, `rate_limited` after
 * too many requests in the run, `stopped`, and `mcp_failed` if the model did not answer. `scrub` redacts the server's texts.
 */
export type Sample = (
	server: string,
	request: CreateMessageRequestParams,
	call: ToolCall,
	signal: AbortSignal,
	scrub: (text: string) => string,
) => Promise<CreateMessageResult>

const MESSAGES = 100
/** Limit of all messages and the system prompt together. */
const CHARACTERS = 100 * 1024
const STOP_SEQUENCES = 4
/** Size of the cache of counts, by run. */
const RUNS = 1_000
const LIMIT_MS = 300_000
/** Used instead of the agent's persona, which the server must not see. */
const PERSONA = 'You answer a request of a program. Answer with what it asks for and nothing else.'

export function samplerOf({
	find,
	config,
	signal: ends,
}: Pick<Context<McpSettings>, 'find' | 'config' | 'signal'>): Sample {
	const counts = new BoundedMap<string, number>(RUNS)
	return async (server, request, call, signal, scrub) => {
		const { systemPrompt, history, prompt } = read(request, scrub)
		const runs = find('runs')
		if (!runs) throw new Fault('unavailable', 'sampling needs the plugin "runs", which is switched off')
		const { parent, children = [] } = await runs.get(call.run_id)
		const earlier = counts.has(call.run_id) ? 0 : await samplingsAmong(runs, children)
		const count = counts.get(call.run_id) ?? earlier
		if (count >= config.max_samplings_per_run)
			throw new Fault(
				'rate_limited',
				`servers made ${count} requests for sampling in this run, which is the limit (mcp.max_samplings_per_run)`,
			)
		counts.set(call.run_id, count + 1)
		const { temperature, stopSequences = [], maxTokens } = request
		const { run_id } = await runs.start(call.agent, {
			prompt,
			persona: systemPrompt === '' ? PERSONA : systemPrompt,
			trigger: 'sampling',
			conversation: `sampling:${call.run_id}`,
			parent: { run_id: call.run_id, depth: (parent?.depth ?? 0) + 1 },
			tools: 'none',
			given: {
				history,
				model: {
					max_tokens: Math.min(maxTokens, config.max_sampling_tokens),
					...(temperature !== undefined && { temperature }),
					...(stopSequences.length > 0 && { sampling: { stop: stopSequences } }),
				},
			},
		})
		call.emit({ event_type: 'mcp.sampling', payload: { server, sampling_run_id: run_id } })
		const stop = AbortSignal.any([signal, ends, AbortSignal.timeout(LIMIT_MS)])
		const { result } = await runs.follow(run_id, { signal: stop, stopsRun: true })
		const { model, finish_reason, status, error } = await result.catch(() => {
			throw new Fault('stopped', 'the request for sampling was cancelled, or took too long')
		})
		const { answer } = await runs.get(run_id)
		if (status !== 'completed' || answer === null)
			throw new Fault('mcp_failed', `the model did not answer: ${error?.message ?? 'its run was stopped'}`)
		return {
			role: 'assistant',
			content: { type: 'text', text: answer },
			model: model ?? '',
			stopReason: finish_reason === 'length' ? 'maxTokens' : 'endTurn',
		}
	}
}

/** Counts requests from before a restart or a reload. */
async function samplingsAmong(runs: Runs, children: readonly string[]): Promise<number> {
	const found = await Promise.all(children.map((run_id) => runs.find(run_id)))
	return found.filter((run) => run?.trigger === 'sampling').length
}

function read(
	{ messages, systemPrompt = '', maxTokens, temperature, stopSequences = [], tools = [] }: CreateMessageRequestParams,
	scrub: (text: string) => string,
) {
	if (tools.length > 0) throw refused('tools are not supported')
	if (messages.length > MESSAGES) throw refused(`there may be at most ${MESSAGES} messages`)
	if (maxTokens < 1) throw refused('maxTokens must be at least 1')
	if (temperature !== undefined && !(temperature >= 0 && temperature <= 2)) throw refused('temperature must be 0 to 2')
	if (stopSequences.length > STOP_SEQUENCES) throw refused(`there may be at most ${STOP_SEQUENCES} stopSequences`)
	const texts = messages.map(({ role, content }) => ({ role, content: textOf(content) }))
	const size = texts.reduce((sum, { content }) => sum + content.length, systemPrompt.length)
	if (size > CHARACTERS)
		throw refused(`the messages and the systemPrompt may have at most ${CHARACTERS} characters together`)
	const history = texts.map(({ role, content }) => ({ role, content: scrub(content) }))
	const last = history.pop()
	if (last?.role !== 'user' || last.content.trim() === '')
		throw refused('the last message must be a text with the role user')
	return { systemPrompt: scrub(systemPrompt).trim(), history, prompt: last.content }
}

/** One block or a list of them. */
function textOf(content: unknown): string {
	const blocks: unknown[] = Array.isArray(content) ? content : [content]
	return blocks
		.map((block) => {
			if (isObject(block) && block.type === 'text' && typeof block.text === 'string') return block.text
			throw refused('only text messages are supported')
		})
		.join('\n\n')
}

function refused(why: string): Fault {
	return new Fault('invalid_request', `sampling: ${why}`)
}
