/** Applies one event of an open run to its spans. */
import { SpanKind } from '@opentelemetry/api'
import type { Attributes, Span } from '@opentelemetry/api'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { names, operations } from './names.ts'
import { fail, innermost, setUsage } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import { endTools, followTool } from './tools.ts'
import type { Tracer } from './tracer.ts'

/** How the run ended. */
export interface Ending {
	outcome: 'completed' | 'failed' | 'stopped'
	/** The code of its error. */
	error?: string
}

const CHILDREN_LIMIT = 64

export function follow(
	tracer: Pick<Tracer, 'begin'>,
	run: OpenRun,
	event: EventEnvelope,
	content: boolean,
): Ending | undefined {
	const { event_type, payload } = event
	const at = Date.parse(event.timestamp)
	switch (event_type) {
		case 'run.completed':
			setUsage(run.span, payload.usage)
			return { outcome: 'completed' }
		case 'run.failed':
			setUsage(run.span, payload.usage)
			return { outcome: 'failed', error: String(payload.code) }
		case 'run.stopped':
			return { outcome: 'stopped' }
		case 'run.paused':
			run.span.addEvent(event_type, {}, at)
			break
		case 'run.resumed':
			if (payload.reason === 'restart') endWork(run, 'thread_lost', at)
			run.span.addEvent(event_type, { reason: String(payload.reason) }, at)
			break
		case 'model.request':
			beginCall(tracer, run, payload, at)
			break
		case 'model.response':
			answerCall(run, payload, at)
			break
		case 'model.retry':
			run.call?.addEvent(event_type, { [names.error]: String(payload.code) }, at)
			break
		case 'model.fallback':
			endCall(run, String(payload.code), at)
			break
		case 'subagent.spawned':
			// Kept, since the sub-agent may start after the call that spawned it has ended.
			if (run.children.size < CHILDREN_LIMIT)
				run.children.set(String(payload.run_id), innermost(run).spanContext().spanId)
			break
		case 'message.system':
		case 'message.user':
		case 'message.assistant':
			if (content) setMessage(run.span, event_type, String(payload.content))
			break
		default:
			followTool(tracer, run, event, content)
	}
}

/** Ends the open spans of a run. */
export function endWork(run: OpenRun, code: string, at: number): void {
	endCall(run, code, at)
	endTools(run, code, at)
}

/** Starts a span, and ends one that is still open. `at`: milliseconds since 1970. */
function beginCall(tracer: Pick<Tracer, 'begin'>, run: OpenRun, payload: Record<string, unknown>, at: number): void {
	endCall(run, 'interrupted', at)
	const model = String(payload.model)
	const target: Attributes = { [names.provider]: String(payload.provider), [names.request_model]: model }
	run.span.setAttributes(target)
	run.call = tracer.begin({
		name: `${operations.model} ${model}`,
		kind: SpanKind.CLIENT,
		at,
		trace: run.trace,
		parent: run.span.spanContext().spanId,
		attributes: {
			[names.operation]: operations.model,
			...target,
			[names.agent]: run.agent,
			[names.step]: Number(payload.step),
		},
	})
}

function answerCall(run: OpenRun, { model, finish_reason, usage }: Record<string, unknown>, at: number): void {
	if (!run.call) return
	run.call.setAttributes({ [names.response_model]: String(model), [names.finish_reasons]: [String(finish_reason)] })
	setUsage(run.call, usage)
	run.call.end(at)
	run.call = null
}

/** Ends a call without an answer. */
function endCall(run: OpenRun, code: string, at: number): void {
	if (!run.call) return
	fail(run.call, code)
	run.call.end(at)
	run.call = null
}

/** In the message format of the conventions. Of several answers, the last one is kept. */
function setMessage(span: Span, event_type: string, content: string): void {
	const parts = [{ type: 'text', content }]
	if (event_type === 'message.system') span.setAttribute(names.system, JSON.stringify(parts))
	else if (event_type === 'message.user') span.setAttribute(names.input, JSON.stringify([{ role: 'user', parts }]))
	else span.setAttribute(names.output, JSON.stringify([{ role: 'assistant', parts }]))
}
