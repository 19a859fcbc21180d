/** The model calls and tool calls of a run, with their times, computed from its events. */
import type { EventEnvelope } from '../../core/store/ports.ts'
import type { Usage } from '../../core/protocol.ts'

interface Timed {
	started_at: string
	/** Null while it is in progress, and if the end of its run interrupted it. */
	ended_at: string | null
	duration_ms: number | null
}

export interface ModelStep extends Timed {
	kind: 'model'
	/** The number of the model answer in the run, from 1. */
	step: number
	/** Of the model that was asked last. */
	provider: string
	model: string
	/** Requests to a model: retries, continuations and fallbacks count. */
	attempts: number
	finish_reason: string | null
	usage: Usage | null
	/** The code of the error that its attempts ended with. */
	error: string | null
}

export interface ToolStep extends Timed {
	kind: 'tool'
	/** As in `config.tools`, such as `memory.store`, `mcp__files__read` or `skill:business-days`. */
	name: string
	call_id: string
	/** The skill call that made this call. */
	parent_call_id: string | null
	/** The code of the error that it failed with. */
	error: string | null
}

export type RunStep = ModelStep | ToolStep

/** Steps of one run that are returned: far more than a run with usual limits has. */
const LIMIT = 5_000
/** Characters of a name or an id: a model may have written them. */
const TEXT = 200

/** `events`: all of the run, in order. Returns its first 5,000 steps, in the order in which they began. */
export async function stepsIn(events: AsyncIterable<EventEnvelope>): Promise<RunStep[]> {
	const steps: RunStep[] = []
	const tools = new Map<string, ToolStep>()
	let model: ModelStep | undefined
	for await (const { event_type, timestamp, payload } of events) {
		const begun = { started_at: timestamp, ended_at: null, duration_ms: null, error: null }
		if (typeof payload.call_id === 'string') onToolEvent(payload.call_id)
		else if (event_type === 'model.request') onModelRequest()
		else if (!model) continue
		else if (event_type === 'model.retry') {
			// After these errors a separate `model.request` follows.
			if (payload.code !== 'model_empty' && payload.code !== 'model_output_invalid') model.attempts++
			model.error = short(payload.code)
		} else if (event_type === 'model.fallback') model.error = short(payload.code)
		else if (event_type === 'model.response') {
			const { provider, model: name, finish_reason, usage } = payload as unknown as ModelStep
			Object.assign(model, { provider, model: name, finish_reason, usage, error: null })
			end(model)
			model = undefined
		} else if (event_type === 'run.failed') {
			model.error = short(payload.code)
			end(model)
		}

		function onModelRequest(): void {
			const { provider, model: name } = payload as { provider: string; model: string }
			if (model) return void Object.assign(model, { provider, model: name, attempts: model.attempts + 1 })
			model = {
				kind: 'model',
				step: Number(payload.step),
				provider,
				model: name,
				...begun,
				attempts: 1,
				finish_reason: null,
				usage: null,
			}
			add(model)
		}
		function onToolEvent(call_id: string): void {
			let step = tools.get(call_id)
			if (!step) {
				step = {
					kind: 'tool',
					name: short(nameIn(payload)),
					call_id: short(call_id),
					parent_call_id: parentIn(call_id),
					...begun,
				}
				tools.set(call_id, step)
				add(step)
			}
			if (!/\.(?:result|completed|failed)$/.test(event_type)) return
			step.error = event_type.endsWith('.failed') ? short(payload.code ?? 'tool_failed') : null
			end(step)
		}
		function end(step: RunStep): void {
			step.ended_at = timestamp
			step.duration_ms = Math.max(0, Date.parse(timestamp) - Date.parse(step.started_at))
		}
		function add(step: RunStep): void {
			if (steps.length < LIMIT) steps.push(step)
		}
	}
	return steps
}

/** The id of the skill call that made a nested call. A nested call's id has a digest and a number after it; see nested-call.ts. */
function parentIn(call_id: string): string | null {
	const parent = /^(.+)\.[0-9a-f]{16}\.\d+$/s.exec(call_id)?.[1]
	return parent === undefined ? null : short(parent)
}

function short(value: unknown): string {
	const text = String(value)
	return text.length > TEXT ? `${text.slice(0, TEXT - 1).toWellFormed()}…` : text
}

function nameIn({ primitive, skill, server, tool }: Record<string, unknown>): string {
	if (typeof primitive === 'string') return primitive
	if (typeof skill === 'string') return `skill:${skill}`
	return typeof server === 'string' ? `mcp__${server}__${String(tool)}` : String(tool)
}
