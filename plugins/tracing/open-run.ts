import { SpanStatusCode } from '@opentelemetry/api'
import type { Span } from '@opentelemetry/api'
import { names } from './names.ts'

/** A run whose span is open, with the spans that stand below. */
export interface OpenRun {
	readonly run_id: string
	readonly agent: string
	readonly trace: string
	readonly span: Span
	/** The model call under way. */
	call: Span | null
	/** Calls of tools under way, by their ids; the innermost last. */
	readonly tools: Map<string, Span>
	/** The id of the span below which a run stands that this one started. */
	readonly children: Map<string, string>
}

/** The span of what it does just now, below which comes what that leads to. */
export function innermost({ span, tools }: OpenRun): Span {
	return [...tools.values()].at(-1) ?? span
}

/** Marks a span as failed. Not with the message, which may repeat what was asked or answered. */
export function fail(span: Span, code: string): void {
	span.setAttribute(names.error, code)
	span.setStatus({ code: SpanStatusCode.ERROR })
}

export function setUsage(span: Span, usage: unknown): void {
	const { input_tokens = 0, output_tokens = 0 } = (usage ?? {}) as Record<string, number>
	span.setAttributes({ [names.input_tokens]: input_tokens, [names.output_tokens]: output_tokens })
}
