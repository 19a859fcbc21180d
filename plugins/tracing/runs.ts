/**
 * Creates spans of runs from their events, with the times of the events, so that tracing never delays a run. Secrets are already
 * redacted from events.
 *
 * The id of a run's first span is derived from the run's id. If this plugin starts in the middle of a run, after a restart or a
 * reload, the run gets another span in the same trace, with a link to the first.
 */
import { SpanKind, TraceFlags } from '@opentelemetry/api'
import type { Attributes, Link } from '@opentelemetry/api'
import type { EventEnvelope } from '../../core/store/ports.ts'
import type { RunRecord } from '../runs/contract.ts'
import { endWork, follow } from './follow.ts'
import { placeIn, spanIdOf, traceIdOf } from './ids.ts'
import { names, operations } from './names.ts'
import { fail, innermost } from './open-run.ts'
import type { OpenRun } from './open-run.ts'
import { isCall } from './tools.ts'
import type { Tracer } from './tracer.ts'

/** The fields of a run's record that its spans need. */
export type KnownRun = Pick<RunRecord, 'agent' | 'conversation' | 'trigger' | 'started_at' | 'parent' | 'family'>

export interface RunTraceOptions {
	tracer: Pick<Tracer, 'begin'>
	/** Throws if the run is unknown. */
	recordOf(run_id: string): Promise<KnownRun>
	/** Whether to include prompts, answers and arguments. */
	content: boolean
	/** Called with errors that cannot be thrown to a caller. */
	failed(error: unknown): void
	/** Limit of runs with open spans, paused ones included; beyond it, the least recently active one ends. */
	limit?: number
}

const OPEN_LIMIT = 1_000
/** Limit of events of a run that wait for its record. */
const DEFERRED_LIMIT = 1_000
/** Events that open another span for a run without an open one; a tool call does too. */
const opening = new Set(['run.resumed', 'run.failed', 'run.stopped', 'model.request'])

/** The parent span of a run that another one started. */
interface ParentSpan {
	trace: string
	span: string
}

interface Begin {
	agent: string
	at: number
	parent: ParentSpan | undefined
	/** Default: a new one. */
	id?: string
	links: Link[]
	attributes: Attributes
}

export function traceRuns({ tracer, recordOf, content, failed, limit = OPEN_LIMIT }: RunTraceOptions) {
	const open = new Map<string, OpenRun>()
	/** Events of runs whose record is being read. */
	const deferred = new Map<string, EventEnvelope[]>()
	let isOver = false

	const begin = (run_id: string, { agent, at, parent, attributes, ...rest }: Begin): void => {
		const trace = parent?.trace ?? traceIdOf(run_id)
		const span = tracer.begin({
			...rest,
			name: `${operations.run} ${agent}`,
			kind: SpanKind.INTERNAL,
			at,
			trace,
			...(parent && { parent: parent.span }),
			attributes: { [names.operation]: operations.run, [names.agent]: agent, [names.run]: run_id, ...attributes },
		})
		const oldest = open.size >= limit ? open.values().next().value : undefined
		if (oldest) end(oldest, at, 'cut')
		open.set(run_id, { run_id, agent, trace, span, call: null, tools: new Map(), children: new Map() })
	}

	/** `outcome`: of the run; `cut` or `interrupted` if only its span ends here. */
	const end = (run: OpenRun, at: number, outcome: string, error?: string): void => {
		open.delete(run.run_id)
		endWork(run, error ?? outcome, at)
		run.span.setAttribute(names.outcome, outcome)
		if (error !== undefined) fail(run.span, error)
		run.span.end(at)
	}

	const start = (
		run_id: string,
		{ payload, agent_id, timestamp }: EventEnvelope,
		parent: ParentSpan | undefined,
	): void => {
		const { trigger, conversation, request_id, traceparent } = payload
		const caller = placeIn(traceparent)
		begin(run_id, {
			agent: agent_id ?? '',
			at: Date.parse(timestamp),
			parent,
			id: spanIdOf(run_id),
			links: caller ? [{ context: caller }] : [],
			attributes: {
				[names.conversation]: String(conversation),
				[names.trigger]: String(trigger),
				...(typeof request_id === 'string' && { [names.request]: request_id }),
			},
		})
	}

	const resume = (run_id: string, { timestamp }: EventEnvelope, record: KnownRun): void => {
		const parent = recordedParent(record)
		const first = {
			traceId: parent?.trace ?? traceIdOf(run_id),
			spanId: spanIdOf(run_id),
			traceFlags: TraceFlags.SAMPLED,
		}
		begin(run_id, {
			agent: record.agent,
			at: Date.parse(timestamp),
			parent,
			links: [{ context: first }],
			attributes: { [names.conversation]: record.conversation, [names.trigger]: record.trigger },
		})
	}

	const followed = (run: OpenRun, event: EventEnvelope): void => {
		if (event.event_type === 'run.resumed') {
			open.delete(run.run_id) // reinserted at the end: the least recently active one is cut first
			open.set(run.run_id, run)
		}
		const ending = follow(tracer, run, event, content)
		if (ending) end(run, Date.parse(event.timestamp), ending.outcome, ending.error)
	}

	/** Opens a span from the run's record, if its parent or the run itself is not tracked here. */
	const openLater = async (run_id: string, event: EventEnvelope): Promise<void> => {
		if (deferred.size >= limit) return
		const events: EventEnvelope[] = []
		deferred.set(run_id, events)
		const record = await recordOf(run_id).catch(() => undefined) // deleted with its agent
		deferred.delete(run_id)
		if (isOver) return
		if (event.event_type === 'run.started') start(run_id, event, record && recordedParent(record))
		else if (record && record.started_at !== null) {
			resume(run_id, event, record)
			events.unshift(event)
		}
		for (const one of events) {
			const run = open.get(run_id)
			if (run) followed(run, one)
		}
	}

	return {
		handle(event: EventEnvelope): void {
			const { run_id, event_type, payload } = event
			if (run_id === null || event_type === 'model.stream') return
			const events = deferred.get(run_id)
			if (events) return void (events.length < DEFERRED_LIMIT && events.push(event))
			const run = open.get(run_id)
			if (run) return followed(run, event)
			if (event_type === 'run.started') {
				if (payload.parent_run_id === undefined) return start(run_id, event, undefined)
				const parentRun = open.get(String(payload.parent_run_id))
				if (parentRun) return start(run_id, event, openParent(parentRun, run_id))
				return void openLater(run_id, event).catch(failed)
			}
			if (opening.has(event_type) || isCall(event)) openLater(run_id, event).catch(failed)
		},
		/** Ends the open spans; the runs may continue. */
		end(): void {
			isOver = true
			for (const run of open.values()) end(run, Date.now(), 'interrupted')
		},
	}
}

/** The span of the call that started the run if known, otherwise that of its parent's current activity. */
function openParent(parent: OpenRun, run_id: string): ParentSpan {
	return { trace: parent.trace, span: parent.children.get(run_id) ?? innermost(parent).spanContext().spanId }
}

/** The first span of the run that started this one, in the trace of their family. */
function recordedParent({ parent, family }: KnownRun): ParentSpan | undefined {
	return parent && { trace: traceIdOf(family ?? parent.run_id), span: spanIdOf(parent.run_id) }
}
