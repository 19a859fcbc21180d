import { Joi } from '../../core/util/lazy-joi.ts'

/** Name of an existing agent, in the path of a route. A name that no agent can have finds none. */
export const agentName = Joi.string().max(64).required().description('Name of the agent.').example('ada')
