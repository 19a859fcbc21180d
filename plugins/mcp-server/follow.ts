/** Waits for the run of a tool call. */
import type { LoggingLevel } from '@modelcontextprotocol/sdk/types.js'
import type { EventEnvelope } from '../../core/store/ports.ts'
import type { Exchange, RunListener, Runs } from '../runs/contract.ts'
import type { McpCall, McpContext } from './call.ts'
import type { RunState } from './views.ts'

/** By default, clients give up after a minute without progress. */
const PROGRESS_EVERY_MS = 10_000

/** `isProgress`: it is sent as progress too, besides to the client's log. */
type RunNotification = [message: string, level: LoggingLevel, isProgress: boolean]

/** By type of event; those of calls of tools, and of failures, depend on the event's payload. */
const notifications = new Map<string, RunNotification>([
	['run.queued', ['waiting for an earlier run of the conversation', 'info', true]],
	['run.completed', ['completed', 'info', false]],
	['run.stopped', ['stopped', 'notice', false]],
	['model.queued', ["waiting for other calls to the model's provider", 'info', true]],
	['model.request', ['thinking', 'debug', true]],
	['model.retry', ['the model did not answer; retrying', 'warning', true]],
	['model.fallback', ['the model did not answer; retrying', 'warning', true]],
	['question.asked', ['asking a question', 'notice', true]],
])

/**
 * Waits for a run that `begin` starts or follows, until it ends, or asks a question that the client does not answer, or
 * `max_wait_s` has passed, or the call's result is no longer needed. Returns the run's current state. Throws what `begin` throws,
 * and `not_found` if the run was deleted meanwhile.
 */
export async function follow(
	ctx: McpContext,
	call: McpCall,
	begin: (listener: RunListener) => Promise<Exchange>,
): Promise<RunState> {
	const began = performance.now()
	const passed = (): number => performance.now() - began
	const limit = ctx.config.max_wait_s * 1000
	const signal = AbortSignal.any([call.signal, AbortSignal.timeout(limit)])
	// Not one of the plugin's timers: calls must not exhaust their limit. Ends with the call.
	const progressTimer = setInterval(
		() => call.progress(`running for ${Math.round(passed() / 1000)} s`),
		PROGRESS_EVERY_MS,
	)
	try {
		const { run_id, result } = await begin({
			signal,
			event(event) {
				const notification = notificationOf(event)
				if (!notification) return
				const [message, level, isProgress] = notification
				if (isProgress) call.progress(message)
				call.log(level, { run_id: event.run_id, agent: event.agent_id, message })
			},
			async ask({ kind, question, options: all }, withdrawn, isBelow) {
				if (isBelow) call.progress('a sub-agent asks a question')
				// A form has no field for changed arguments: the tool `answer_question` accepts them.
				const options = kind === 'approval' ? all?.filter((option) => option !== 'edit') : all
				const text = { question: isBelow ? `A sub-agent asks:\n\n${question}` : question, ...(options && { options }) }
				return (await call.ask?.(text, Math.max(0, limit - passed()), withdrawn)) ?? null
			},
		})
		await result.catch((error: unknown) => {
			if (!signal.aborted) throw error
		})
		return await stateOf(ctx.use('runs'), run_id)
	} finally {
		clearInterval(progressTimer)
	}
}

/** The run, and its open question or that of one of its sub-agents. */
export async function stateOf(runs: Runs, run_id: string): Promise<RunState> {
	const run = await runs.get(run_id)
	return { run, asked: await runs.asked(run) }
}

/** The notification of an event, without arguments, results or texts of tools. Undefined if the client need not know. */
function notificationOf({ event_type, payload }: EventEnvelope): RunNotification | undefined {
	const known = notifications.get(event_type)
	if (known) return known
	switch (event_type) {
		case 'run.failed':
			return [`failed: ${String(payload.code)}`, 'error', false]
		case 'primitive.failed':
		case 'skill.failed':
		case 'mcp.failed':
			return [`${toolIn(payload) ?? 'a tool'} failed: ${String(payload.code)}`, 'warning', false]
		default:
			if (typeof payload.arguments !== 'string') return undefined
			return [`calling ${toolIn(payload) ?? event_type}`, 'info', true]
	}
}

/** The tool of an event about a tool call. All types of such events have the same fields. */
function toolIn({ skill, primitive, server, tool }: Record<string, unknown>): string | undefined {
	if (typeof server === 'string' && typeof tool === 'string') return `${tool} of ${server}`
	return [skill, primitive, tool].find((name) => typeof name === 'string')
}
