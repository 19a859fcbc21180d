import { SpanStatusCode } from '@opentelemetry/api'
import type { Span } from '@opentelemetry/api'
import { names } from './names.ts'

/** A run whose span is open, with the open spans below it. */
export interface OpenRun {
	readonly run_id: string
	readonly agent: string
	readonly trace: string
	readonly span: Span
	/** The current model call. */
	call: Span | null
	/** Tool calls in progress, by id; the innermost last. */
	readonly tools: Map<string, Span>
	/** The id of the parent span of each run that this one started, by the id of that run. */
	readonly children: Map<string, string>
}

/** The span of the run's current activity: the parent of new spans. */
export function innermost({ span, tools }: OpenRun): Span {
	return [...tools.values()].at(-1) ?? span
}

/** Marks a span as failed, without the error's message, which may repeat prompts or answers. */
export function fail(span: Span, code: string): void {
	span.setAttribute(names.error, code)
	span.setStatus({ code: SpanStatusCode.ERROR })
}

export function setUsage(span: Span, usage: unknown): void {
	const { input_tokens = 0, output_tokens = 0 } = (usage ?? {}) as Record<string, number>
	span.setAttributes({ [names.input_tokens]: input_tokens, [names.output_tokens]: output_tokens })
}
