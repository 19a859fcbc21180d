/** Whether a tool call may be made, must be approved first, or is denied. */
import { Fault } from '../../core/errors.ts'
import type { Context, ToolDefinition } from '../../core/plugin.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import type { JournalStep } from './journal-step.ts'
import type { Journal } from './run-log.ts'
import type { View } from '../../core/redactor/redactor.ts'
import type { AgentRecord, Ruling } from '../agents/contract.ts'
import { ARGUMENTS_LIMIT, approvalDigest } from './approval-text.ts'
import { keys } from './keys.ts'
import { parseArguments } from './tool-specs.ts'

export type CallPolicy = Awaited<ReturnType<typeof policyOf>>

type ApprovedStep = Extract<JournalStep, { kind: 'approved' }>

/** A call that needs approval. */
export interface WantedCall {
	/** The tool's canonical name; `tool` is its displayed name. */
	name: string
	tool: string
	arguments: Record<string, unknown>
	digest: string
}

/** The agent's current policy, which may have changed since the run began. */
export async function policyOf({ store, use }: Pick<Context, 'store' | 'use'>, agent: AgentRecord, journal: Journal) {
	const agents = use('agents')
	const current = await agents.find(agent.name)
	const { tools } = current?.uid === agent.uid ? current.config : agent.config
	return {
		ruling: (tool: ToolDefinition): Ruling => agents.rulingOn(tools, tool),
		/** The approval of the call by a person, if any. */
		approved: (call_id: string): ApprovedStep | undefined =>
			journal.steps.find((step): step is ApprovedStep => step.kind === 'approved' && step.call_id === call_id),
		/** Whether calls with this digest were approved permanently. */
		isPermanent: async (digest: string): Promise<boolean> =>
			(await store.get(keys.approval(agent.uid, digest))) !== undefined,
	}
}

/** The tools of an agent, without those that its policy denies. */
export async function offeredTo(
	{ toolbox, use }: Pick<Context, 'toolbox' | 'use'>,
	agent: AgentRecord,
): Promise<ToolDefinition[]> {
	const agents = use('agents')
	return (await toolbox.list(agent)).filter((tool) => agents.rulingOn(agent.config.tools, tool) !== 'deny')
}

export function denied(tool: ToolDefinition): Fault {
	return new Fault(
		'permission_denied',
		`the operator denies ${tool.shown_as ?? tool.name} to this agent (config.tools.deny)`,
	)
}

export type Admission =
	/** `edited`: a person replaced the arguments. */
	{ status: 'admitted'; request: ToolCallRequest; edited: boolean } | { status: 'asks'; wanted: WantedCall }

/** Throws `permission_denied`, `approval_refused`, and `invalid_arguments` for what nobody could approve. */
export async function admit(
	tool: ToolDefinition,
	request: ToolCallRequest,
	policy: CallPolicy,
	redactor: View,
): Promise<Admission> {
	const ruling = policy.ruling(tool)
	if (ruling === 'deny') throw denied(tool)
	const approved = policy.approved(request.id)
	if (approved) {
		const given = { ...request, arguments: approved.arguments }
		// Only what was approved may execute, even if stored records were changed meanwhile.
		if (approvalDigest(tool.name, asJson(parseArguments(tool, given.arguments))) !== approved.digest)
			throw new Fault('approval_refused', `the call of ${tool.name} is not the one that was approved; it was not made`)
		return { status: 'admitted', request: given, edited: approved.edited === true }
	}
	if (ruling === 'allow') return { status: 'admitted', request, edited: false }
	const wanted = wantedCall(tool, parseArguments(tool, request.arguments), redactor)
	if (!(await policy.isPermanent(wanted.digest))) return { status: 'asks', wanted }
	return { status: 'admitted', request: { ...request, arguments: JSON.stringify(wanted.arguments) }, edited: false }
}

/** Throws `invalid_arguments` if the arguments cannot be shown completely: they are too long, or contain a secret. */
export function wantedCall(tool: ToolDefinition, parsed: Record<string, unknown>, redactor: View): WantedCall {
	const args = asJson(parsed)
	const size = JSON.stringify(args, null, 2).length
	if (size > ARGUMENTS_LIMIT)
		throw new Fault(
			'invalid_arguments',
			`the call of ${tool.name} needs approval, but its arguments are too long to be shown: ${size} characters, at most ${ARGUMENTS_LIMIT}`,
		)
	if (redactor.active && redactor.data(args, 'record') !== args)
		throw new Fault(
			'invalid_arguments',
			`the call of ${tool.name} needs approval, but its arguments contain the value of a secret; write its handle {{secret:NAME}} instead`,
		)
	return { name: tool.name, tool: tool.shown_as ?? tool.name, arguments: args, digest: approvalDigest(tool.name, args) }
}

/** The arguments after a JSON round trip, so that people see exactly what the tool gets. */
function asJson(args: Record<string, unknown>): Record<string, unknown> {
	return JSON.parse(JSON.stringify(args)) as Record<string, unknown>
}
