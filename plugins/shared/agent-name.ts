import { Joi } from '../../core/util/lazy-joi.ts'

/** Name of an existing agent, in the path of a route. Only its length is checked: other invalid names are unknown (404). */
export const agentName = Joi.string().max(64).required().description('Name of the agent.').example('ada')
