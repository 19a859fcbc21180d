/** Agents as models of OpenAI's API. */
import type { AgentLimit } from '../shared/agent-limit.ts'
import { AGENT_NAME } from '../shared/agent-name.ts'
import type { Context } from '../../core/plugin.ts'
import type { AgentRecord } from '../agents/contract.ts'
import { paramError } from './errors.ts'

const PREFIX = 'svc/'

/** `svc/<agent>`, or `<agent>` alone. Throws `not_found`. */
export async function agentOf({ use }: Pick<Context, 'use'>, caller: AgentLimit, model: string): Promise<AgentRecord> {
	const name = model.startsWith(PREFIX) ? model.slice(PREFIX.length) : model
	const agent = AGENT_NAME.test(name) ? await use('agents').visibleTo(caller).find(name) : undefined
	if (agent) return agent
	const message = `there is no model "${model}"; each agent is a model, and GET /v1/models lists them`
	throw paramError('model', message, 'not_found')
}

export function modelOf({ name, created_at }: AgentRecord): object {
	return { id: PREFIX + name, object: 'model', created: Math.floor(Date.parse(created_at) / 1000), owned_by: 'svc' }
}
