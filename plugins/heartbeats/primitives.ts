import Joi from 'joi'
import { Fault, isFault } from '../../core/errors.ts'
import type { Context, ToolCall } from '../../core/plugin.ts'
import type { HeartbeatRequest, Heartbeats, HeartbeatSettings, Repeatable } from './contract.ts'
import { requestKeys } from './request.ts'

/** `heartbeat.create`, `heartbeat.delete`: of the calling agent only. */
export function addPrimitives(ctx: Context<HeartbeatSettings>, heartbeats: Heartbeats): void {
	ctx.primitive({
		name: 'heartbeat.create',
		description:
			'Starts you on a schedule, with a prompt that you write now. Use it for reminders and for recurring tasks. Give either cron or every. Returns the id, which heartbeat.delete needs to end it.',
		parameters: Joi.object(requestKeys(ctx.use('runs').deliverFields)),
		async run(args, call) {
			try {
				const made = await heartbeats.create(call.agent, args as unknown as HeartbeatRequest, repeatable(call))
				return { id: made.id, next_at: made.next_at, deliver: made.deliver }
			} catch (error) {
				if (isFault(error, 'invalid_request')) throw new Fault('invalid_arguments', error.message, { cause: error })
				throw error
			}
		},
	})
	ctx.primitive({
		name: 'heartbeat.delete',
		description: 'Ends one of your heartbeats.',
		parameters: Joi.object({ id: Joi.string().min(1).max(64).required().description('Id of the heartbeat.') }),
		async run({ id }, call) {
			await heartbeats.remove(call.agent, String(id), repeatable(call))
			return { id, status: 'deleted' }
		},
	})
}

function repeatable({ key, emit, run_id }: ToolCall): Repeatable {
	return { key, emit, run_id }
}
