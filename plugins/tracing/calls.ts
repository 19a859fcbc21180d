/** Spans of model calls. */
import { SpanKind } from '@opentelemetry/api'
import type { Attributes } from '@opentelemetry/api'
import { names, operations } from './names.ts'
import { fail, setUsage } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import type { Tracer } from './tracer.ts'

type Payload = Record<string, unknown>

/** Starts a span, and ends one that is still open. `at`: milliseconds since 1970. */
export function beginCall(tracer: Pick<Tracer, 'begin'>, run: OpenRun, payload: Payload, at: number): void {
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

export function answerCall(run: OpenRun, { model, finish_reason, usage }: Payload, at: number): void {
	if (!run.call) return
	run.call.setAttributes({ [names.response_model]: String(model), [names.finish_reasons]: [String(finish_reason)] })
	setUsage(run.call, usage)
	run.call.end(at)
	run.call = null
}

/** Ends a call without an answer. */
export function endCall(run: OpenRun, code: string, at: number): void {
	if (!run.call) return
	fail(run.call, code)
	run.call.end(at)
	run.call = null
}
