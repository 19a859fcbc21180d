/** Lists and calls the tools of a session. */
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import type Joi from 'joi'
import { Fault, isFault } from '../../core/errors.ts'
import { agentTools } from './agent-tools.ts'
import type { McpCall, McpContext, ServedTool, CallOutcome } from './call.ts'
import { runTools } from './run-tools.ts'
import { excerpt } from '../../core/util/excerpt.ts'

/** Limit of characters of a validation error. */
const ERROR_LIMIT = 2_000
const tools: readonly ServedTool[] = [...agentTools, ...runTools]

/** The tools in the form of the protocol, always in the same order. */
export function listTools(ctx: McpContext, isAllowed: (scope: string) => boolean) {
	return tools
		.filter((tool) => isAllowed(tool.scope) && isAvailable(ctx, tool))
		.map(({ name, title, description, input, output, annotations }) => ({
			name,
			title,
			description,
			inputSchema: { ...jsonSchemaOf(input), additionalProperties: false },
			outputSchema: jsonSchemaOf(output),
			annotations: { title, ...annotations },
		}))
}

/**
 * Calls a tool. Faults become results that the model can read. Throws `tool_unknown` for an unknown tool, and errors that are not
 * Faults.
 */
export async function callTool(
	ctx: McpContext,
	isAllowed: (scope: string) => boolean,
	name: string,
	args: Record<string, unknown>,
	call: McpCall,
): Promise<CallToolResult> {
	const tool = tools.find((one) => one.name === name && isAvailable(ctx, one))
	if (!tool) throw new Fault('tool_unknown', `there is no tool ${JSON.stringify(name.slice(0, 100))}`)
	try {
		if (!isAllowed(tool.scope))
			throw new Fault('forbidden', `${name} needs the scope ${tool.scope}, which the token of this session lacks`)
		return answerOf(await tool.run(ctx, checked(tool, args) as never, call))
	} catch (error) {
		if (!isFault(error)) throw error
		return { content: [{ type: 'text', text: `${error.code}: ${error.said}` }], isError: true }
	}
}

function answerOf({ data, text, failed = false }: CallOutcome): CallToolResult {
	const content: CallToolResult['content'] = [{ type: 'text', text: text ?? JSON.stringify(data) }]
	return { content, structuredContent: data, ...(failed && { isError: true }) }
}

function checked({ name, input }: ServedTool, args: Record<string, unknown>): unknown {
	const { value, error } = input.validate(args, { convert: false, abortEarly: false })
	if (error)
		throw new Fault('invalid_arguments', `the arguments of ${name} are wrong: ${excerpt(error.message, ERROR_LIMIT)}`)
	return value
}

function isAvailable(ctx: McpContext, { service }: ServedTool): boolean {
	return service === undefined || ctx.find(service) !== undefined
}

const schemas = new WeakMap<Joi.ObjectSchema, { type: 'object'; [key: string]: unknown }>()

/** Cached, so that each tool's schema is converted once. */
function jsonSchemaOf(schema: Joi.ObjectSchema): { type: 'object'; [key: string]: unknown } {
	let made = schemas.get(schema)
	if (!made) {
		const { $schema: _, ...rest } = schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
		schemas.set(schema, (made = { ...rest, type: 'object' }))
	}
	return made
}
