/**
 * Derives ids of traces and spans from ids of runs, so that they stay the same after a restart, and can be computed from a run's
 * id alone.
 */
import type { SpanContext } from '@opentelemetry/api'

/** The trace of a run without a parent: its id without hyphens. Runs that it starts have the same trace. */
export function traceIdOf(run_id: string): string {
	return run_id.replaceAll('-', '')
}

/** The id of a run's first span: the half of its UUIDv7 that is random. */
export function spanIdOf(run_id: string): string {
	return traceIdOf(run_id).slice(16)
}

/** A span in the format of W3C Trace Context, version 00; undefined for invalid text. */
export function placeIn(traceparent: unknown): SpanContext | undefined {
	const [, traceId, spanId, flags] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(String(traceparent)) ?? []
	if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
	return { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16) & 1 }
}
