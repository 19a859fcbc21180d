import { addUsage, roundCost } from '../../core/protocol.ts'
import type { Usage } from '../../core/protocol.ts'
import type { EventEnvelope } from '../../core/store/ports.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { counter, histogram } from './metric.ts'

/** An unfinished run. */
interface KnownRun {
	/** Null if the run started before this plugin: then its record is read at the end. */
	trigger: string | null
	/** Milliseconds before its latest pause. */
	active_ms: number
	/** When it started or was resumed, in milliseconds since 1970; null while it is paused. */
	since: number | null
	/** The current model call. */
	call: { provider: string; since: number } | null
	/** Usage of its answers; null if the run started before this plugin. */
	used: Usage | null
}

/** Limit of runs tracked in memory. For older ones, mostly paused, the record is read when they end. */
const RUNS_LIMIT = 10_000
/** Third-party plugins may use any value. */
const TRIGGER = /^[a-z][a-z0-9_-]{0,31}$/
const PRIMITIVE = /^[a-z][a-z0-9_.]{0,63}$/
const RUN_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800]
const CALL_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300]

/** Counts from events. `recordOf`: the record of a run; throws if it is unknown. */
export function countEvents(recordOf: (run_id: string) => Promise<{ trigger: string; active_ms: number }>) {
	const runs = counter('svc_runs_total', 'Runs that ended, by outcome and by what started them.', [
		'outcome',
		'trigger',
	])
	const runTimes = histogram(
		'svc_run_duration_seconds',
		'Seconds for which an ended run was active; waiting for an answer does not count.',
		RUN_BOUNDS,
	)
	const calls = counter(
		'svc_model_calls_total',
		'Calls of models: answered, failed, stopped with their run, or retried after a failure.',
		['provider', 'outcome'],
	)
	const callTimes = histogram(
		'svc_model_call_duration_seconds',
		'Seconds from a request to a model until its complete answer, retries included.',
		CALL_BOUNDS,
		['provider'],
	)
	const tokens = counter('svc_model_tokens_total', 'Input and output tokens of models.', ['type'])
	const cost = counter('svc_model_cost_total', 'Cost of model calls, in the currency of the prices.', ['provider'])
	const tools = counter(
		'svc_tool_calls_total',
		'Calls of tools by kind (primitive, skill, mcp, unknown) and outcome; primitives by their names.',
		['kind', 'tool', 'outcome'],
	)
	const kills = counter('svc_sandbox_kills_total', 'Programs of skills that were ended, by what they exceeded.', [
		'reason',
	])
	const deliveries = counter(
		'svc_webhook_deliveries_total',
		'Deliveries to webhooks, by whether their signature was valid.',
		['valid'],
	)
	const known = new BoundedMap<string, KnownRun>(RUNS_LIMIT)

	const knownRun = (run_id: string): KnownRun => {
		const run = known.get(run_id)
		if (run) return run
		const fresh: KnownRun = { trigger: null, active_ms: 0, since: null, call: null, used: null }
		known.set(run_id, fresh)
		return fresh
	}
	const endCall = (run: KnownRun, outcome: string): void => {
		if (run.call) calls.add([run.call.provider, outcome])
		run.call = null
	}
	const endRun = (run_id: string, outcome: string, at: number): void => {
		const run = knownRun(run_id)
		known.delete(run_id)
		const latest_ms = run.since === null ? 0 : Math.max(0, at - run.since)
		const count = (trigger: string, before_ms: number): void => {
			runs.add([outcome, TRIGGER.test(trigger) ? trigger : 'other'])
			runTimes.observe([], (before_ms + latest_ms) / 1000)
		}
		if (run.trigger !== null) return count(run.trigger, run.active_ms)
		recordOf(run_id).then(
			({ trigger, active_ms }) => count(trigger, active_ms),
			() => count('unknown', run.active_ms), // deleted with its agent
		)
	}
	const countUsage = (provider: string, { input_tokens, output_tokens, cost: spent }: Usage): void => {
		if (spent !== undefined) cost.add([provider], spent)
		tokens.add(['input'], input_tokens)
		tokens.add(['output'], output_tokens)
	}
	/** The run's usage includes calls without a usable answer, which have no event. */
	const countRest = ({ call, used }: KnownRun, usage: Usage): void => {
		if (call && used) countUsage(call.provider, restOf(usage, used))
	}
	const countTool = (kind: string, tool: string, outcome: 'ok' | 'failed'): void => tools.add([kind, tool, outcome])

	const handleOfRun = (run_id: string, { event_type, payload, timestamp }: EventEnvelope): void => {
		const at = Date.parse(timestamp)
		switch (event_type) {
			case 'run.started':
				return void Object.assign(knownRun(run_id), {
					trigger: String(payload.trigger),
					since: at,
					used: { input_tokens: 0, output_tokens: 0 },
				})
			case 'run.paused': {
				const run = knownRun(run_id)
				if (run.since !== null) run.active_ms += Math.max(0, at - run.since)
				return void (run.since = null)
			}
			case 'run.resumed': {
				const run = knownRun(run_id)
				endCall(run, 'stopped') // its thread was lost during the call
				return void (run.since = at)
			}
			case 'model.request':
				return void (knownRun(run_id).call = { provider: String(payload.provider), since: at })
			case 'model.retry':
				return calls.add([String(payload.provider), 'retried'])
			case 'model.fallback':
				return endCall(knownRun(run_id), 'failed')
			case 'model.response': {
				const run = knownRun(run_id)
				if (run.call) callTimes.observe([run.call.provider], Math.max(0, at - run.call.since) / 1000)
				endCall(run, 'answered')
				const usage = payload.usage as Usage
				if (run.used) addUsage(run.used, usage)
				return countUsage(String(payload.provider), usage)
			}
			case 'run.completed':
				return endRun(run_id, 'completed', at)
			case 'run.failed':
				countRest(knownRun(run_id), payload.usage as Usage)
				endCall(knownRun(run_id), String(payload.code).startsWith('model_') ? 'failed' : 'stopped')
				return endRun(run_id, 'failed', at)
			case 'run.stopped':
				if (payload.usage) countRest(knownRun(run_id), payload.usage as Usage)
				endCall(knownRun(run_id), 'stopped')
				return endRun(run_id, 'stopped', at)
		}
	}

	return {
		handle(event: EventEnvelope): void {
			const { event_type, payload, run_id } = event
			switch (event_type) {
				case 'primitive.result':
					return countTool('primitive', primitiveIn(payload), 'ok')
				case 'primitive.failed':
					// The name of an unknown tool is model output.
					if (payload.code === 'tool_unknown') return countTool('unknown', '', 'failed')
					return countTool('primitive', primitiveIn(payload), 'failed')
				case 'skill.completed':
					return countTool('skill', '', 'ok')
				case 'skill.failed':
					if (isKill(payload.code)) kills.add([payload.code.slice('sandbox_'.length)])
					return countTool('skill', '', 'failed')
				case 'mcp.result':
					return countTool('mcp', '', 'ok')
				case 'mcp.failed':
					return countTool('mcp', '', 'failed')
				case 'webhook.accepted':
					return deliveries.add(['true'])
				case 'webhook.rejected': {
					const { code, untold = 0 } = payload as { code: string; untold?: number }
					return deliveries.add([String(code !== 'signature_invalid')], 1 + untold)
				}
			}
			// `model.stream` is frequent, and has nothing to count.
			if (run_id !== null && event_type !== 'model.stream') handleOfRun(run_id, event)
		},
		metrics: [runs, runTimes, calls, callTimes, tokens, cost, tools, kills, deliveries],
	}
}

/** Never negative: the usage of a stopped run may lack an answer that was being stored at that moment. */
function restOf(all: Usage, used: Usage): Usage {
	return {
		input_tokens: Math.max(0, all.input_tokens - used.input_tokens),
		output_tokens: Math.max(0, all.output_tokens - used.output_tokens),
		...(all.cost !== undefined && { cost: Math.max(0, roundCost(all.cost - (used.cost ?? 0))) }),
	}
}

function primitiveIn({ primitive }: Record<string, unknown>): string {
	return typeof primitive === 'string' && PRIMITIVE.test(primitive) ? primitive : ''
}

function isKill(code: unknown): code is string {
	return code === 'sandbox_timeout' || code === 'sandbox_memory' || code === 'sandbox_crash'
}
