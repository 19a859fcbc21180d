/** Spans of tool calls: primitives, skills and tools of MCP servers. */
import { SpanKind } from '@opentelemetry/api'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { names, operations } from './names.ts'
import { fail, innermost } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import type { SpanStart, Tracer } from './tracer.ts'

/** Limit of open calls of one run, nested ones included, such as a primitive in a skill. */
const OPEN_LIMIT = 128

/** The name of an unknown tool is model output, possibly a whole answer, which must not appear without `tracing.content`. */
const LIKE_A_NAME = /^[A-Za-z0-9_.-]{1,64}$/

const begins = new Set(['primitive.called', 'skill.invoked', 'mcp.called'])
const results = new Set(['primitive.result', 'skill.completed', 'mcp.result'])
const failures = new Set(['primitive.failed', 'skill.failed', 'mcp.failed'])

export function isCall({ event_type }: EventEnvelope): boolean {
	return begins.has(event_type)
}

/** Does nothing for events that are not about a tool call. */
export function followTool(tracer: Pick<Tracer, 'begin'>, run: OpenRun, event: EventEnvelope, content: boolean): void {
	const { event_type, payload } = event
	const id = String(payload.call_id)
	if (begins.has(event_type)) {
		if (run.tools.size >= OPEN_LIMIT) return
		const span = tracer.begin(startOf(run, event))
		if (content) span.setAttribute(names.arguments, String(payload.arguments))
		run.tools.set(id, span)
		return
	}
	const failed = failures.has(event_type)
	if (!failed && !results.has(event_type)) return
	// A call of an unknown tool fails without a start event.
	const span = run.tools.get(id) ?? (payload.code === 'tool_unknown' ? tracer.begin(startOf(run, event)) : undefined)
	if (!span) return // started before the run was tracked here
	run.tools.delete(id)
	if (failed) fail(span, String(payload.code))
	if (content) span.setAttribute(names.result, String(payload.result ?? payload.message))
	span.end(Date.parse(event.timestamp))
}

/** Ends the calls that are open when their run ends or loses its thread. */
export function endTools(run: OpenRun, code: string, at: number): void {
	for (const span of [...run.tools.values()].toReversed()) {
		fail(span, code)
		span.end(at)
	}
	run.tools.clear()
}

function startOf(run: OpenRun, { payload, timestamp, event_type }: EventEnvelope): SpanStart {
	const { server, tool, primitive, skill, call_id, code } = payload
	const isMcp = event_type.startsWith('mcp.')
	const called = isMcp ? `mcp__${String(server)}__${String(tool)}` : String(primitive ?? skill)
	const name = code !== 'tool_unknown' || LIKE_A_NAME.test(called) ? called : 'unknown'
	return {
		name: `${operations.tool} ${name}`,
		kind: SpanKind.INTERNAL,
		at: Date.parse(timestamp),
		trace: run.trace,
		parent: innermost(run).spanContext().spanId,
		attributes: {
			[names.operation]: operations.tool,
			[names.tool]: name,
			[names.tool_type]: isMcp ? 'extension' : 'function',
			[names.call]: String(call_id),
			[names.agent]: run.agent,
			...(isMcp && { [names.mcp_server]: String(server) }),
		},
	}
}
