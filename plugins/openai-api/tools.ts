/** The client's tools. The agent's model may call them; the run ends with the call. */
import type { ServerResponse } from 'node:http'
import type { Schema } from 'joi'
import { Joi } from '../../core/util/lazy-joi.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { wireName } from '../../sandbox/wire-name.ts'
import type { ToolSpec } from '../../core/protocol.ts'
import { paramError } from './errors.ts'

const HEADER_LIMIT = 2_048

export interface ClientTool {
	name: string
	description?: string | null
	parameters?: Record<string, unknown> | null
}

/** A tool that is not a function, such as `web_search`, which a provider would execute. */
export interface HostedTool {
	type: string
}

/** The schema of `tools`. `fields`: those of a function. */
export function tools(fields: Record<string, Schema>): Schema {
	return Joi.array()
		.items(
			Joi.alternatives().conditional('.type', {
				is: 'function',
				// oxlint-disable-next-line unicorn/no-thenable -- joi's word
				then: Joi.object({ type: Joi.valid('function').required(), ...fields }),
				otherwise: Joi.object({ type: Joi.string().max(64).required() }).unknown(),
			}),
		)
		.max(128)
		.allow(null)
		.description(
			"The client's functions, in addition to the agent's tools. Tools of other types are ignored, and listed in `x-svc-ignored`.",
		)
}

export function functionsIn<One extends HostedTool>(given: readonly (One | HostedTool)[] | null | undefined): One[] {
	return (given ?? []).filter((tool): tool is One => tool.type === 'function')
}

/** Lists the ignored fields of a request in a response header, such as `tools[0].web_search, client_metadata`. */
export function setIgnoredHeader(
	response: ServerResponse,
	body: { tools?: readonly HostedTool[] | null; client_metadata?: unknown },
): void {
	const ignored = (body.tools ?? []).flatMap(({ type }, at) =>
		type === 'function' ? [] : [`tools[${at}].${type.replaceAll(/[^\w-]/g, '_')}`],
	)
	if (body.client_metadata !== undefined && body.client_metadata !== null) ignored.push('client_metadata')
	if (ignored.length > 0) response.setHeader('x-svc-ignored', ignored.join(', ').slice(0, HEADER_LIMIT))
}

/** Throws `invalid_request` if two tools have the same name, or one has the name of an agent's tool. */
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
		if (own.has(name)) throw paramError(param, `the agent already has a tool "${name}"; give this one another name`)
		if (seen.has(name)) throw paramError(param, `two tools have the name "${name}"`)
		seen.add(name)
		return { name, description: description ?? '', parameters: parameters ?? { type: 'object', properties: {} } }
	})
}
