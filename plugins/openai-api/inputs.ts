/** Converts a request of either endpoint to the inputs of a run. */
import { defined } from '../../core/util/defined.ts'
import type { Context } from '../../core/plugin.ts'
import type { JsonForm } from '../../sandbox/order.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { RunInputs } from '../runs/contract.ts'
import type { AgentRequest } from './exchange.ts'
import { chooseTools, instructionsFor } from './form.ts'
import type { ToolChoice } from './form.ts'
import { progressOf } from './progress.ts'
import { specsOf } from './tools.ts'
import type { ClientTool } from './tools.ts'
import { joined } from './turn.ts'
import type { RequestTurn } from './turn.ts'

interface RequestOptions {
	/** The client's functions. */
	functions: readonly ClientTool[]
	json: JsonForm | undefined
	model: NonNullable<RunInputs['model']>
}

/** Throws `invalid_request` for tools whose names are taken, and for an invalid `tool_choice`. */
export async function inputsOf(
	ctx: Pick<Context, 'store' | 'use' | 'toolbox'>,
	{ agent, owner, isNamed }: { agent: AgentRecord; owner: string; isNamed: boolean },
	turn: RequestTurn,
	{ tool_choice, parallel_tool_calls }: { tool_choice?: ToolChoice; parallel_tool_calls?: boolean | null },
	{ functions, json, model }: RequestOptions,
): Promise<Omit<AgentRequest['start'], 'conversation'>> {
	const { offered, call } = chooseTools(functions, tool_choice)
	const form = json || call ? defined({ json, call }) : undefined
	const [tools, since] = await Promise.all([specsOf(ctx, agent, offered), progressOf(ctx, agent, owner, turn)])
	return {
		prompt: turn.prompt,
		attachments: turn.attachments,
		...((turn.system !== null || form) && { persona: joined([agent.persona, turn.system, instructionsFor(form)]) }),
		given: {
			...(!isNamed && { history: turn.history }),
			since,
			tools,
			...(form && { form }),
			one_call: parallel_tool_calls === false,
			model,
		},
	}
}
