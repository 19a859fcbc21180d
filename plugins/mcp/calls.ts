/** The calls in progress of one server: their deadlines, and the server's questions during them. */
import type {
	CreateMessageRequestParams,
	CreateMessageResult,
	ElicitRequestParams,
	ElicitRequestURLParams,
	ElicitResult,
} from '@modelcontextprotocol/sdk/types.js'
import { Fault, isFault, messageOf } from '../../core/errors.ts'
import type { Attached, ToolCall } from '../../core/plugin.ts'
import type { McpSettings } from './contract.ts'
import { elicit } from './elicitation.ts'
import type { Link } from './link.ts'
import { openCallTimer } from './call-timer.ts'
import type { CallTimer } from './call-timer.ts'
import { filesOfResult, textOfResult } from './results.ts'
import type { Sample } from './sampling.ts'

export interface CallsOptions {
	server: string
	config: Pick<McpSettings, 'call_timeout_s' | 'max_call_s'>
	/** Waits for the connection. Throws `mcp_unavailable`. */
	ready(signal: AbortSignal): Promise<Link>
	/** Why a person must sign in to the server; null if nobody must. */
	needsLogin(): string | null
	/** Why the connection was lost; empty if unknown. */
	whyLost(): string
	/** Redacts text. */
	scrub(text: string): string
	/** Redacts only the tokens of a login. For complete results: those are redacted later, like every tool result. */
	hideTokens(text: string): string
	sample: Sample
}

export type Calls = ReturnType<typeof openCalls>

const CONCURRENT_CALLS = 64
const VISITS = 3
const MESSAGE_LIMIT = 2_000

interface Call {
	toolCall: ToolCall
	timer: CallTimer
}

export function openCalls({ server, config, ready, needsLogin, whyLost, scrub, hideTokens, sample }: CallsOptions) {
	const inProgress = new Set<Call>()

	/** The latest call, if all calls belong to one run: a server's request does not name the call that it belongs to. */
	const callOfOneRun = (): Call | undefined => {
		const calls = [...inProgress]
		const latest = calls.at(-1)
		return calls.every(({ toolCall }) => toolCall.run_id === latest?.toolCall.run_id) ? latest : undefined
	}

	const ask = (request: ElicitRequestParams, { toolCall, timer }: Call): Promise<ElicitResult> =>
		elicit(request, server, scrub, async (question) => {
			const resume = timer.pause()
			try {
				return await toolCall.ask(question)
			} finally {
				resume()
			}
		})

	const visit = async (visits: ElicitRequestURLParams[], call: Call): Promise<boolean> => {
		for (const request of visits) if ((await ask(request, call)).action !== 'accept') return false
		return true
	}

	const request = async (tool: string, args: Record<string, unknown>, signal: AbortSignal, call: Call) => {
		const { isAnswer, requiredVisits, statusOfError } = await import('./session.ts')
		let isRenewed = false
		let isVisited = false
		for (;;) {
			const link = await ready(signal)
			try {
				return await link.session.callTool(tool, args, { signal, onprogress: () => call.timer.progress() })
			} catch (error) {
				if (signal.aborted) throw error
				const status = statusOfError(error) ?? 0
				const loginReason = needsLogin()
				if (loginReason !== null && (status === 401 || status === 403)) {
					if (status === 401) link.end('it needs a login')
					throw new Fault('mcp_unavailable', loginReason)
				}
				const visits = requiredVisits(error).slice(0, VISITS)
				if (visits.length > 0 && !isVisited) {
					isVisited = true
					if (await visit(visits, call)) continue
				}
				if (status === 404 && !isRenewed) {
					// The server has lost the session and has not executed the call. The protocol requires a new session.
					isRenewed = true
					link.end('it no longer knows the session')
					await link.ended
					continue
				}
				if (!isAnswer(error)) void link.check()
				throw error
			}
		}
	}

	return {
		get size(): number {
			return inProgress.size
		},
		/**
		 * Makes a call and returns text for a model, with the files of the result if it has some. Throws `mcp_unavailable` (not
		 * connected, or too many calls), `mcp_timeout`, `mcp_failed` (the tool or server reported it, or the connection was lost),
		 * `stopped`.
		 */
		async make(tool: string, args: Record<string, unknown>, toolCall: ToolCall): Promise<string | Attached> {
			const about = `${tool} of the MCP server "${server}"`
			if (inProgress.size >= CONCURRENT_CALLS) {
				throw new Fault(
					'mcp_unavailable',
					`the MCP server "${server}" has ${CONCURRENT_CALLS} calls in progress; try again later`,
				)
			}
			const late = new AbortController()
			const limits = { idle_ms: config.call_timeout_s * 1000, total_ms: config.max_call_s * 1000 }
			const timer = openCallTimer(limits, (limit) => late.abort(limit))
			const call: Call = { toolCall, timer }
			inProgress.add(call)
			try {
				const result = await request(tool, args, AbortSignal.any([toolCall.signal, late.signal]), call)
				if (result.isError !== true) {
					const files = filesOfResult(result, scrub)
					const resultText = hideTokens(textOfResult(result, scrub, true))
					return files.length > 0 ? toolCall.attach(resultText, files) : resultText
				}
				const text = textOfResult(result, scrub)
				throw new Fault('mcp_failed', text === '' ? `${about} failed without a reason` : text)
			} catch (error) {
				if (isFault(error)) throw error
				if (toolCall.signal.aborted) throw new Fault('stopped', 'the run was stopped')
				if (late.signal.aborted)
					throw new Fault('mcp_timeout', `${about} returned no result within ${late.signal.reason}`)
				const message = scrub(messageOf(error)).slice(0, MESSAGE_LIMIT)
				const { isAnswer } = await import('./session.ts')
				if (isAnswer(error)) throw new Fault('mcp_failed', `${about} failed: ${message}`, { cause: error })
				const why = whyLost() || message.replace(/^MCP error -?\d+: /, '')
				throw new Fault('mcp_failed', `${about} was interrupted (${why}); its outcome is unknown`, { cause: error })
			} finally {
				timer.end()
				inProgress.delete(call)
			}
		},
		/** Asks a question of the server. Declines unless all calls in progress belong to one run: the question names no call. */
		async elicit(request: ElicitRequestParams): Promise<ElicitResult> {
			const call = callOfOneRun()
			return call ? ask(request, call) : { action: 'decline' }
		},
		/**
		 * Answers a request of the server to the agent's model. Throws `conflict` unless all calls in progress belong to one run, and
		 * what `Sample` throws.
		 */
		async sample(request: CreateMessageRequestParams, signal: AbortSignal): Promise<CreateMessageResult> {
			const call = callOfOneRun()
			if (!call)
				throw new Fault(
					'conflict',
					'sampling is possible only during a tool call, and only while all calls in progress belong to one run',
				)
			const { toolCall, timer } = call
			const resume = timer.pause()
			try {
				return await sample(server, request, toolCall, AbortSignal.any([toolCall.signal, signal]), scrub)
			} finally {
				resume()
			}
		},
	}
}
