/** Tools of the client: the agent's model may call them, and the run ends with the call. */
import type { AgentRef, Context } from '../../core/plugin.ts'
import { wireName } from '../../core/protocol.ts'
import type { ToolSpec } from '../../core/protocol.ts'
import { wrong } from './errors.ts'

export interface ClientTool {
	name: string
	description?: string | null
	parameters?: Record<string, unknown> | null
}

/** Throws `invalid_request` if two have the same name, or one has the name of a tool of the agent. */
export async function specsOf(
	{ toolbox }: Pick<Context, 'toolbox'>,
	agent: AgentRef,
	tools: readonly ClientTool[],
): Promise<ToolSpec[]> {
	if (tools.length === 0) return []
	const own = new Set((await toolbox.list(agent)).map(({ name }) => wireName(name)))
	const seen = new Set<string>()
	return tools.map(({ name, description, parameters }, at) => {
		const param = `tools[${at}]`
		if (own.has(name)) throw wrong(param, `the agent has a tool "${name}" of its own; give this one another name`)
		if (seen.has(name)) throw wrong(param, `two tools have the name "${name}"`)
		seen.add(name)
		return { name, description: description ?? '', parameters: parameters ?? { type: 'object', properties: {} } }
	})
}
