/** Where the result of a run goes besides its record, as callers and models write it. */
import Joi from 'joi'

/** `origin`: the chat in which it was set up. `none`: nowhere. Otherwise a chat that is bound to the agent. */
export type Deliver = 'origin' | 'none' | { channel: string; chat: string }

const id = (limit: number) =>
	Joi.string()
		.pattern(/^[\x20-\x7e]+$/)
		.message('{#label} must be printable ASCII characters')
		.max(limit)
		.required()

/** For the bodies of routes and the arguments of primitives. */
export const deliverField = Joi.alternatives(
	Joi.valid('origin', 'none'),
	Joi.object({
		channel: id(64).description('Id of the channel.'),
		chat: id(128).description('Id of the chat on its platform, which must be bound to the agent.'),
	}),
)
	.messages({ 'alternatives.match': '{#label} must be origin, none, or an object with channel and chat' })
	.description(
		'Where the answers go: `origin`, the chat in which this is set up (default there); `none` (default elsewhere); or a chat that is bound to the agent. An answer of exactly NOTHING_TO_SAY goes nowhere.',
	)

/** For answers. */
export const deliverShown = Joi.alternatives(
	Joi.valid('origin', 'none'),
	Joi.object({ channel: Joi.string().required(), chat: Joi.string().required() }),
)
	.required()
	.description('Where the answers go.')
	.example('none')
