import type { Schema } from 'joi'
import { excerpt } from '../../core/util/excerpt.ts'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { Context } from '../../core/plugin.ts'
import { asArguments } from '../shared/as-arguments.ts'
import type { HeartbeatChange, HeartbeatRequest, Heartbeats, HeartbeatSettings } from './contract.ts'
import { changeKeys, requestKeys } from './request.ts'

/** Limit of a prompt in the list for the model, in characters. */
const PROMPT_SHOWN = 300

const id = Joi.string().min(1).max(64).required().description('Id of the heartbeat.')

/** `heartbeat.create`, `.list`, `.update`, `.delete`: for heartbeats of the calling agent only. */
export function addPrimitives(ctx: Context<HeartbeatSettings>, heartbeats: Heartbeats): void {
	const { deliverFields } = ctx.use('runs')
	const { paused, ...others } = changeKeys(deliverFields)
	ctx.primitive({
		name: 'heartbeat.create',
		description:
			'Starts you later, with a prompt that you write now: once with at (for reminders), or repeatedly with cron or every. What you answer then goes to the chat in which you set it up. Returns the id.',
		parameters: Joi.object(requestKeys(deliverFields)),
		run: (args, call) =>
			asArguments(async () => {
				const made = await heartbeats.create(call.agent, args as unknown as HeartbeatRequest, call)
				return { id: made.id, next_at: made.next_at, deliver: made.deliver }
			}),
	})
	ctx.primitive({
		name: 'heartbeat.list',
		description: 'Lists your heartbeats: reminders and recurring tasks.',
		parameters: Joi.object({}),
		repeatable: true,
		async run(_args, call) {
			const all = await heartbeats.list(call.agent)
			return all.map((one) => ({ ...one, prompt: excerpt(one.prompt, PROMPT_SHOWN) }))
		},
	})
	ctx.primitive({
		name: 'heartbeat.update',
		description:
			'Changes, pauses or resumes one of your heartbeats, with the fields of heartbeat.create. Fields that you omit stay unchanged.',
		parameters: Joi.object({ id, ...briefly(others, 'As in heartbeat.create.'), paused }),
		run: ({ id: heartbeat_id, ...args }, call) =>
			asArguments(async () => {
				const change = args as unknown as HeartbeatChange
				const changed = await heartbeats.change(call.agent, String(heartbeat_id), change, call)
				return { id: changed.id, next_at: changed.next_at, paused: changed.paused, deliver: changed.deliver }
			}),
	})
	ctx.primitive({
		name: 'heartbeat.delete',
		description: 'Deletes one of your heartbeats.',
		parameters: Joi.object({ id }),
		async run({ id: heartbeat_id }, call) {
			await heartbeats.remove(call.agent, String(heartbeat_id), call)
			return { id: heartbeat_id, status: 'deleted' }
		},
	})
}

/** Replaces descriptions that another tool already gives, since descriptions cost tokens in each request. */
function briefly(keys: Record<string, Schema>, description: string): Record<string, Schema> {
	return Object.fromEntries(Object.entries(keys).map(([key, schema]) => [key, schema.description(description)]))
}
