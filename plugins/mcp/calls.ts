/** The running calls of one server: their deadlines, and the questions that the server asks during them. */
import { Fault, isFault, messageOf } from '../../core/errors.ts'
import type { Attached, ToolCall } from '../../core/plugin.ts'
import type { McpSettings } from './contract.ts'
import { elicit } from './elicitation.ts'
import type { Elicited, FormRequest, UrlRequest } from './elicitation.ts'
import type { Link } from './link.ts'
import { openCallTimer } from './call-timer.ts'
import type { CallTimer } from './call-timer.ts'
import { filesOfResult, textOfResult } from './results.ts'
import type { Sample, Sampled, SamplingRequest } from './sampling.ts'
import { loadSdk } from './sdk.ts'

export interface CallsOptions {
	server: string
	config: Pick<McpSettings, 'call_timeout_s' | 'max_call_s'>
	/** The connection, once it is made. Throws `mcp_unavailable`. */
	ready(signal: AbortSignal): Promise<Link>
	/** Why a person must sign in to the server, if one must. */
	needsLogin(): string | null
	/** Why the connection was lost, as far as it is known. */
	whyLost(): string
	/** Redacts text. */
	scrub(text: string): string
	/** Redacts tokens of a login alone: a complete result, which is redacted as every result is afterwards. */
	hideTokens(text: string): string
	sample: Sample
}

export type Calls = ReturnType<typeof openCalls>

const AT_A_TIME = 64
const VISITS = 3
const MESSAGE_LIMIT = 2_000

interface Call {
	site: ToolCall
	timer: CallTimer
}

export function openCalls({ server, config, ready, needsLogin, whyLost, scrub, hideTokens, sample }: CallsOptions) {
	const underWay = new Set<Call>()

	/** The latest call, if all are of one run: what a server asks names no call. */
	const callOfOneRun = (): Call | undefined => {
		const calls = [...underWay]
		const call = calls.at(-1)
		return calls.every((one) => one.site.run_id === call?.site.run_id) ? call : undefined
	}

	const ask = (request: FormRequest | UrlRequest, { site, timer }: Call): Promise<Elicited> =>
		elicit(request, server, scrub, async (question) => {
			const resume = timer.hold()
			try {
				return await site.ask(question)
			} finally {
				resume()
			}
		})

	const visit = async (visits: { message: string; url: string }[], call: Call): Promise<boolean> => {
		for (const one of visits) {
			if ((await ask({ mode: 'url', ...one }, call)).action !== 'accept') return false
		}
		return true
	}

	const request = async (tool: string, args: Record<string, unknown>, signal: AbortSignal, call: Call) => {
		const sdk = await loadSdk()
		let isRenewed = false
		let isVisited = false
		for (;;) {
			const link = await ready(signal)
			try {
				return await link.session.callTool(tool, args, { signal, onprogress: () => call.timer.progress() })
			} catch (error) {
				if (signal.aborted) throw error
				const status = sdk.statusOfError(error) ?? 0
				const needed = needsLogin()
				if (needed !== null && (status === 401 || status === 403)) {
					if (status === 401) link.lose('it needs a login')
					throw new Fault('mcp_unavailable', needed)
				}
				const visits = sdk.requiredVisits(error).slice(0, VISITS)
				if (visits.length > 0 && !isVisited) {
					isVisited = true
					if (await visit(visits, call)) continue
				}
				if (status === 404 && !isRenewed) {
					// The server has forgotten the session and has not executed the call: the protocol requires a new session.
					isRenewed = true
					link.lose('it no longer knows the session')
					await link.over
					continue
				}
				if (!sdk.isAnswer(error)) void link.check()
				throw error
			}
		}
	}

	return {
		get size(): number {
			return underWay.size
		},
		/**
		 * Makes a call and returns text for a model, with the files of the result if it has some. Throws `mcp_unavailable` (not
		 * connected, or too many calls), `mcp_timeout`, `mcp_failed` (the tool or server reported it, or the connection was lost),
		 * `stopped`.
		 */
		async make(tool: string, args: Record<string, unknown>, site: ToolCall): Promise<string | Attached> {
			const about = `${tool} of the MCP server "${server}"`
			if (underWay.size >= AT_A_TIME) {
				throw new Fault(
					'mcp_unavailable',
					`the MCP server "${server}" has ${AT_A_TIME} calls in progress; try again later`,
				)
			}
			const late = new AbortController()
			const limits = { idle_ms: config.call_timeout_s * 1000, total_ms: config.max_call_s * 1000 }
			const timer = openCallTimer(limits, (what) => late.abort(what))
			const call: Call = { site, timer }
			underWay.add(call)
			try {
				const result = await request(tool, args, AbortSignal.any([site.signal, late.signal]), call)
				if (result.isError !== true) {
					const files = filesOfResult(result, scrub)
					const resultText = hideTokens(textOfResult(result, scrub, true))
					return files.length > 0 ? site.attach(resultText, files) : resultText
				}
				const text = textOfResult(result, scrub)
				throw new Fault('mcp_failed', text === '' ? `${about} failed without a reason` : text)
			} catch (error) {
				if (isFault(error)) throw error
				if (site.signal.aborted) throw new Fault('stopped', 'the run was stopped')
				if (late.signal.aborted)
					throw new Fault('mcp_timeout', `${about} returned no result within ${late.signal.reason}`)
				const message = scrub(messageOf(error)).slice(0, MESSAGE_LIMIT)
				const sdk = await loadSdk()
				if (sdk.isAnswer(error)) throw new Fault('mcp_failed', `${about} failed: ${message}`, { cause: error })
				const why = whyLost() || message.replace(/^MCP error -?\d+: /, '')
				throw new Fault('mcp_failed', `${about} was interrupted (${why}); its outcome is unknown`, { cause: error })
			} finally {
				timer.end()
				underWay.delete(call)
			}
		},
		/** A question of the server names no call, so it is asked only if just one run can be meant. */
		async elicit(asked: FormRequest | UrlRequest): Promise<Elicited> {
			const call = callOfOneRun()
			return call ? ask(asked, call) : { action: 'decline' }
		},
		/** The same for its requests to the agent's model. Throws a Fault if no run or several can be meant, and as `Sample`. */
		async sample(request: SamplingRequest, signal: AbortSignal): Promise<Sampled> {
			const call = callOfOneRun()
			if (!call)
				throw new Fault(
					'conflict',
					'sampling is possible only during a tool call, and only while all calls in progress belong to one run',
				)
			const { site, timer } = call
			const resume = timer.hold()
			try {
				return await sample(server, request, site, AbortSignal.any([site.signal, signal]), scrub)
			} finally {
				resume()
			}
		},
	}
}
