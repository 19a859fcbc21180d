/** Spans of model calls. */
import { SpanKind } from '@opentelemetry/api'
import type { Attributes } from '@opentelemetry/api'
import { names, operations } from './names.ts'
import { fail, setUsage } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import type { Tracer } from './tracer.ts'

type Payload = Record<string, unknown>

/** One ends where the next begins. `at`: milliseconds since 1970. */
export function beginCall(tracer: Pick<Tracer, 'begin'>, run: OpenRun, payload: Payload, at: number): void {
	endCall(run, 'interrupted', at)
	const model = String(payload.model)
	const asked: Attributes = { [names.provider]: String(payload.provider), [names.request_model]: model }
	run.span.setAttributes(asked)
	run.call = tracer.begin({
		name: `${operations.model} ${model}`,
		kind: SpanKind.CLIENT,
		at,
		trace: run.trace,
		parent: run.span.spanContext().spanId,
		attributes: {
			[names.operation]: operations.model,
			...asked,
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

/** One that gave no answer. */
export function endCall(run: OpenRun, code: string, at: number): void {
	if (!run.call) return
	fail(run.call, code)
	run.call.end(at)
	run.call = null
}
