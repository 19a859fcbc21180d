import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { Context, ToolCall, ToolDefinition } from '../../core/plugin.ts'
import type { Deliver, StartRequest } from '../runs/contract.ts'
import { asArguments } from '../shared/as-arguments.ts'
import { hasEvent } from '../shared/log-events.ts'
import type { Spawned, SubagentSettings } from './contract.ts'
import { callId, conversationOf, keys } from './keys.ts'
import { addSpawner } from './spawners.ts'

const PROMPT_LIMIT_BYTES = 100 * 1024
const PERSONA_LIMIT_BYTES = 10 * 1024
/** Characters of the prompt in the event. */
const SHOWN_LIMIT = 1_000

interface Arguments {
	prompt: string
	persona?: string
	wait: boolean
	deliver?: Deliver
}

/** The primitive `subagent.spawn`. A repeated call finds the sub-agent that it started before. */
export function spawnTool(ctx: Context<SubagentSettings>): ToolDefinition {
	return {
		name: 'subagent.spawn',
		concurrent: true,
		description:
			'Gives a task to a sub-agent: a run of yours with an empty conversation of its own, which knows nothing but the prompt and sees no files. ' +
			'Returns its result; with "wait": false it returns at once, and the result comes as a later message.',
		parameters: Joi.object({
			prompt: Joi.string()
				.min(1)
				.max(PROMPT_LIMIT_BYTES, 'utf8')
				.required()
				.description('The task, with everything that is needed to do it.'),
			persona: Joi.string()
				.min(1)
				.max(PERSONA_LIMIT_BYTES, 'utf8')
				.description('Who the sub-agent should be, instead of you.'),
			wait: Joi.boolean().default(true).description('Whether to wait for the result. Default true.'),
			deliver: ctx
				.use('runs')
				.deliverFields.given.description(
					'With "wait": false, where your answer to the result goes: origin, the chat that you are in (default there); none (default elsewhere); or a chat that is bound to you. An answer of exactly NOTHING_TO_SAY is not sent.',
				),
		}),
		async run(args, call) {
			const { wait, deliver, ...task } = args as unknown as Arguments
			if (wait && deliver !== undefined)
				throw new Fault(
					'invalid_arguments',
					'use deliver only with "wait": false; with true the result is returned to you',
				)
			const place = keys.spawned(call.agent.uid, call.run_id, callId(call.key))
			const earlier = await ctx.store.get<Spawned>(place)
			const run_id = earlier ? earlier.value.run_id : await start(ctx, call, task, wait, deliver)
			if (!earlier || !(await isReported(ctx, call.run_id, run_id)))
				call.emit({ event_type: 'subagent.spawned', payload: { run_id, prompt: cut(ctx, call, task.prompt), wait } })
			return wait ? waitFor(ctx, call, run_id) : { run_id, status: 'started' }
		},
	}
}

/** Returns the sub-agent's run. The run, its count under the limits and its pending report become durable together. */
async function start(
	ctx: Context<SubagentSettings>,
	call: ToolCall,
	task: Pick<StartRequest, 'prompt' | 'persona'>,
	wait: boolean,
	deliver: Deliver | undefined,
): Promise<string> {
	const { max_per_run, max_depth } = ctx.config
	const { uid } = call.agent
	const id = callId(call.key)
	const depth = ((await ctx.use('runs').get(call.run_id)).parent?.depth ?? 0) + 1
	if (depth > max_depth)
		throw new Fault(
			'subagent_limit',
			`sub-agents may be nested ${max_depth} deep (subagents.max_depth), but this one would be at depth ${depth}; do the task yourself`,
		)
	const destination = wait
		? undefined
		: await asArguments(() => ctx.use('runs').destination(call.agent, deliver, call.run_id))
	addSpawner(call.agent.name)
	const { run_id } = await ctx.use('runs').start(call.agent, {
		...task,
		trigger: 'subagent',
		conversation: conversationOf(id),
		parent: { run_id: call.run_id, depth },
		// Each start changes the parent's record, so concurrent starts conflict and are counted one after another.
		also: async (run) => {
			const count = (await Array.fromAsync(ctx.store.list(keys.family(uid, call.run_id)))).length
			if (count >= max_per_run)
				throw new Fault(
					'subagent_limit',
					`this run has started ${count} sub-agents, the limit is ${max_per_run} (subagents.max_per_run); do the task yourself`,
				)
			const value: Spawned = { run_id: run, parent_run_id: call.run_id, wait, ...(destination && { destination }) }
			return [{ key: keys.spawned(uid, call.run_id, id), value, expect: null }]
		},
	})
	return run_id
}

/** Within the call of a skill, a call cannot wait: then the run that was started is stopped again. */
async function waitFor(ctx: Context<SubagentSettings>, call: ToolCall, run_id: string): Promise<unknown> {
	try {
		return call.waitFor(run_id)
	} catch (error) {
		await ctx.use('runs').stop(run_id)
		throw error
	}
}

/** Whether the start was reported before a crash interrupted the call. */
function isReported({ events }: Context<SubagentSettings>, parent: string, run_id: string): Promise<boolean> {
	const filter = { run_id: parent, types: ['subagent.spawned'] }
	return hasEvent(events, filter, ({ payload }) => payload.run_id === run_id)
}

function cut({ redactor }: Context<SubagentSettings>, { agent }: ToolCall, whole: string): string {
	const { text, dropped } = redactor.of([agent]).cut(whole, SHOWN_LIMIT, 'event')
	return dropped === 0 ? text : `${text}…`
}
