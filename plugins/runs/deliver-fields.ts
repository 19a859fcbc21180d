/** Schemas of `deliver`, the destination of a run's result. */
import { Joi } from '../../core/util/lazy-joi.ts'
import type { DeliverFields } from './contract.ts'

const id = (limit: number) =>
	Joi.string()
		.pattern(/^[\x20-\x7e]+$/)
		.message('{#label} must be printable ASCII characters')
		.max(limit)
		.required()

/** As `Runs.deliverFields`. */
export const deliverFields: DeliverFields = {
	given: Joi.alternatives(
		Joi.valid('origin', 'none'),
		Joi.object({
			channel: id(64).description('Id of the channel, or its type if only one has it.'),
			chat: id(128).description('Id of the chat on its platform.'),
		}),
	)
		.messages({ 'alternatives.match': '{#label} must be origin, none, or an object with channel and chat' })
		.description(
			'Where the answers go: `origin`, the chat in which this is set up (default there); `none` (default elsewhere); or a chat bound to the agent. An answer of exactly NOTHING_TO_SAY is not sent.',
		)
		.example('none'),
	shown: Joi.alternatives(
		Joi.valid('origin', 'none'),
		Joi.object({ channel: Joi.string().required(), chat: Joi.string().required() }),
	)
		.required()
		.description('Where the answers go.')
		.example('none'),
}
