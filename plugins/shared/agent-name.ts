import { Joi } from '../../core/util/lazy-joi.ts'

/** The form of an agent's name. */
export const AGENT_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** Name of an existing agent, in a body or a query. */
export const agentId = Joi.string()
	.pattern(AGENT_NAME)
	.message('{#label} must be the name of an agent: 1 to 64 of A-Z a-z 0-9 - _ . that begin with a letter or digit')
	.description('Name of the agent.')
	.example('ada')

/** Name of an existing agent, in the path of a route. Only its length is checked: other invalid names are unknown (404). */
export const agentName = Joi.string().max(64).required().description('Name of the agent.').example('ada')
