import type { AgentLimit } from '../shared/agent-limit.ts'
import type { Services } from '../../core/plugin.ts'
import type { McpContext } from './call.ts'

/** The context of a session: in it, only the agents exist that its caller may know of, and their runs. */
export function contextFor(ctx: McpContext, caller: AgentLimit): McpContext {
	if (!caller.agents) return ctx
	const use = (name: keyof Services): unknown => {
		if (name === 'agents') return ctx.use('agents').visibleTo(caller)
		return name === 'runs' ? ctx.use('runs').visibleTo(caller) : ctx.use(name)
	}
	return Object.create(ctx, { use: { value: use } }) as McpContext
}
