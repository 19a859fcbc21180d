/** Completes the arguments of prompts and of resource templates. */
import type { CompleteRequest } from '@modelcontextprotocol/sdk/types.js'
import { Fault } from '../../core/errors.ts'
import type { McpContext } from './call.ts'
import { promptParameter } from './prompts.ts'
import { resourceTemplates } from './resources.ts'

/** The protocol's limit. */
const VALUES = 100
/** Number of the newest runs whose conversations are offered. */
const RUNS_READ = 100

type CompletionRequest = CompleteRequest['params']

/** At most 100 values that begin with the text so far. Throws `invalid_request` for an unknown prompt or template. */
export async function complete(ctx: McpContext, mayRun: boolean, request: CompletionRequest) {
	const matching = new Set<string>()
	for await (const candidate of await candidates(ctx, mayRun, request)) {
		if (candidate.startsWith(request.argument.value)) matching.add(candidate)
		if (matching.size > VALUES) break
	}
	return { completion: { values: [...matching].slice(0, VALUES), hasMore: matching.size > VALUES } }
}

async function candidates(
	ctx: McpContext,
	mayRun: boolean,
	{ ref, argument, context }: CompletionRequest,
): Promise<AsyncIterable<string> | string[]> {
	if (ref.type === 'ref/prompt') {
		const parameter = await promptParameter(ctx, mayRun, ref.name, argument.name)
		return parameter?.enum?.map(String) ?? (parameter?.type === 'boolean' ? ['true', 'false'] : [])
	}
	if (!resourceTemplates.some(({ uriTemplate }) => uriTemplate === ref.uri)) {
		const known = resourceTemplates.map(({ uriTemplate }) => uriTemplate).join(', ')
		throw new Fault('invalid_request', `there is no such template; there are: ${known}`)
	}
	if (!ref.uri.includes(`{${argument.name}}`) && !ref.uri.includes(`{?${argument.name}}`)) return []
	switch (argument.name) {
		case 'name':
			return agentNames(ctx)
		case 'conversation':
			return conversations(ctx, context?.arguments?.name ?? '')
		default:
			return runIds(ctx, argument.value)
	}
}

async function* agentNames(ctx: McpContext): AsyncIterable<string> {
	for await (const { name } of ctx.use('agents').list()) yield name
}

/** The conversations of an agent's newest runs, newest first. Empty for an unknown agent. */
async function conversations(ctx: McpContext, name: string): Promise<string[]> {
	const agent = await ctx.use('agents').find(name)
	const runs = agent ? await ctx.use('runs').list(agent, { limit: RUNS_READ }) : []
	return runs.map(({ conversation }) => conversation)
}

async function runIds(ctx: McpContext, prefix: string): Promise<string[]> {
	const { runs } = await ctx.use('runs').listAll({ limit: VALUES, ...(prefix !== '' && { id: prefix }) })
	return runs.map(({ run_id }) => run_id)
}
