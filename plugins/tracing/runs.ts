/**
 * Spans of runs, made from their events, with the events' times: a run does not know about it and never
 * waits for it. Secrets are already redacted from events.
 *
 * A run's first span has an id derived from the run's. If this plugin starts in the middle of a run, after a restart
 * or a reload, the run gets a further span in the same trace, with a link to the first.
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

export interface RunTraces {
	handle(event: EventEnvelope): void
	/** Ends the open spans; the runs may continue. */
	end(): void
}

/** The fields of a run's record that its spans need. */
export type KnownRun = Pick<RunRecord, 'agent' | 'conversation' | 'trigger' | 'started_at' | 'parent' | 'family'>

export interface RunTraceOptions {
	tracer: Pick<Tracer, 'begin'>
	/** Throws if the run is unknown. */
	recordOf(run_id: string): Promise<KnownRun>
	/** Whether to include prompts, answers and arguments. */
	content: boolean
	/** Called with errors that have no other receiver. */
	failed(error: unknown): void
	/** Limit of runs with open spans, paused ones included; beyond it, the least recently active one ends. */
	limit?: number
}

const OPEN_LIMIT = 1_000
/** Events of a run that wait for its record. */
const WAITING_LIMIT = 1_000
/** Events that open a further span for a run without one; so does a tool's call. */
const opening = new Set(['run.resumed', 'run.failed', 'run.stopped', 'model.request'])

/** The parent span of a run that another one started. */
interface Above {
	trace: string
	span: string
}

interface Begin {
	agent: string
	at: number
	above: Above | undefined
	/** Default: a new one. */
	id?: string
	links: Link[]
	attributes: Attributes
}

export function traceRuns({ tracer, recordOf, content, failed, limit = OPEN_LIMIT }: RunTraceOptions): RunTraces {
	const open = new Map<string, OpenRun>()
	/** Events of runs whose record is being read. */
	const waiting = new Map<string, EventEnvelope[]>()
	let isOver = false

	const begin = (run_id: string, { agent, at, above, attributes, ...rest }: Begin): void => {
		const trace = above?.trace ?? traceIdOf(run_id)
		const span = tracer.begin({
			...rest,
			name: `${operations.run} ${agent}`,
			kind: SpanKind.INTERNAL,
			at,
			trace,
			...(above && { parent: above.span }),
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

	const start = (run_id: string, { payload, agent_id, timestamp }: EventEnvelope, above: Above | undefined): void => {
		const { trigger, conversation, request_id, traceparent } = payload
		const caller = placeIn(traceparent)
		begin(run_id, {
			agent: agent_id ?? '',
			at: Date.parse(timestamp),
			above,
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
		const above = aboveBy(record)
		const first = {
			traceId: above?.trace ?? traceIdOf(run_id),
			spanId: spanIdOf(run_id),
			traceFlags: TraceFlags.SAMPLED,
		}
		begin(run_id, {
			agent: record.agent,
			at: Date.parse(timestamp),
			above,
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

	/** From its record, since its parent, or the run itself, is no longer tracked here. */
	const openLater = async (run_id: string, event: EventEnvelope): Promise<void> => {
		if (waiting.size >= limit) return
		const events: EventEnvelope[] = []
		waiting.set(run_id, events)
		const record = await recordOf(run_id).catch(() => undefined) // deleted with its agent
		waiting.delete(run_id)
		if (isOver) return
		if (event.event_type === 'run.started') start(run_id, event, record && aboveBy(record))
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
		handle(event) {
			const { run_id, event_type, payload } = event
			if (run_id === null || event_type === 'model.stream') return
			const events = waiting.get(run_id)
			if (events) return void (events.length < WAITING_LIMIT && events.push(event))
			const run = open.get(run_id)
			if (run) return followed(run, event)
			if (event_type === 'run.started') {
				if (payload.parent_run_id === undefined) return start(run_id, event, undefined)
				const parent = open.get(String(payload.parent_run_id))
				if (parent) return start(run_id, event, aboveIn(parent, run_id))
				return void openLater(run_id, event).catch(failed)
			}
			if (opening.has(event_type) || isCall(event)) openLater(run_id, event).catch(failed)
		},
		end() {
			isOver = true
			for (const run of open.values()) end(run, Date.now(), 'interrupted')
		},
	}
}

/** The span of the call that started it, if known; else of its parent's current activity. */
function aboveIn(parent: OpenRun, run_id: string): Above {
	return { trace: parent.trace, span: parent.children.get(run_id) ?? innermost(parent).spanContext().spanId }
}

/** The trace of its family, below the first span of the run that started it. */
function aboveBy({ parent, family }: KnownRun): Above | undefined {
	return parent && { trace: traceIdOf(family ?? parent.run_id), span: spanIdOf(parent.run_id) }
}
