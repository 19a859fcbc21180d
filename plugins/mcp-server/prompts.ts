/** Offers the active skills of agents as prompts, with the names `agent/skill`. */
import { Fault, isFault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Parameter, UsableSkill } from '../skills/contract.ts'
import type { McpContext } from './call.ts'
import { excerpt } from '../../core/util/excerpt.ts'
import { jsonIn } from '../../core/util/json-in.ts'

/** Limits of the prompts in a page, and of the agents whose skills are read for it. */
const PAGE = 50
const AGENTS_READ = 1_000
/** Limits in characters. */
const DESCRIPTION = 300
const INSTRUCTIONS = 64 * 1024
const CURSOR = 512
/** The argument that instructions without parameters get. */
const TASK: Parameter = {
	name: 'task',
	type: 'string',
	required: false,
	description: 'The task for these instructions.',
}

/** `cursor`: `nextCursor` of the previous page. `mayRun`: also lists skills that need their agent. Throws `invalid_request`. */
export async function listPrompts(ctx: McpContext, mayRun: boolean, cursor?: string) {
	const [from, after] = cursor === undefined ? ['', null] : readCursor(cursor)
	const prompts: ReturnType<typeof describe>[] = []
	const skills = ctx.find('skills')
	let read = 0
	let last: Cursor | undefined
	if (skills)
		for await (const agent of ctx.use('agents').list()) {
			if (agent.name < from || (agent.name === from && after === null)) continue
			if (read++ === AGENTS_READ) return { prompts, nextCursor: writeCursor(last ?? [from, after]) }
			for (const skill of await skills.usable(agent)) {
				if (!isOffered(skill, mayRun) || (agent.name === from && skill.name <= (after ?? ''))) continue
				if (prompts.length === PAGE) return { prompts, nextCursor: writeCursor(last ?? [from, after]) }
				prompts.push(describe(agent, skill))
				last = [agent.name, skill.name]
			}
			last = [agent.name, null]
		}
	return { prompts }
}

/** Throws `invalid_request` for an unknown prompt or wrong arguments. */
export async function getPrompt(ctx: McpContext, mayRun: boolean, name: string, args: Record<string, string> = {}) {
	const { agent, skill } = await findPrompt(ctx, mayRun, name)
	const text = await textOf(agent, skill, args)
	return {
		description: excerpt(skill.description, DESCRIPTION),
		messages: [{ role: 'user' as const, content: { type: 'text' as const, text } }],
	}
}

/** The parameter for an argument of a prompt; undefined for an unknown argument. Throws `invalid_request` for an unknown prompt. */
export async function promptParameter(
	ctx: McpContext,
	mayRun: boolean,
	name: string,
	argument: string,
): Promise<Parameter | undefined> {
	const { skill } = await findPrompt(ctx, mayRun, name)
	return parametersOf(skill).find((one) => one.name === argument)
}

async function findPrompt(
	ctx: McpContext,
	mayRun: boolean,
	name: string,
): Promise<{ agent: AgentRef; skill: UsableSkill }> {
	const [owner = '', wanted] = name.split(/\/(.*)/s)
	try {
		const agent = await ctx.use('agents').get(owner)
		const usable = (await ctx.find('skills')?.usable(agent)) ?? []
		const skill = usable.find((one) => one.name === wanted && isOffered(one, mayRun))
		if (skill) return { agent, skill }
	} catch (error) {
		if (!isFault(error, 'not_found')) throw error
	}
	throw new Fault(
		'invalid_request',
		`there is no prompt ${JSON.stringify(name.slice(0, 150))}; prompts/list names them`,
	)
}

/** A skill that needs its agent is of no use to a session that may not run agents. */
function isOffered({ instructions }: UsableSkill, mayRun: boolean): boolean {
	return instructions !== null || mayRun
}

function describe(agent: AgentRef, skill: UsableSkill) {
	return {
		name: `${agent.name}/${skill.name}`,
		title: `${skill.name} (${agent.name})`,
		description: excerpt(skill.description, DESCRIPTION),
		arguments: parametersOf(skill).map(({ name, type, required, description }) => ({
			name,
			description: excerpt(type === 'string' ? description : `${description} (JSON: ${type})`.trim(), DESCRIPTION),
			required,
		})),
	}
}

function parametersOf({ parameters, instructions }: UsableSkill): readonly Parameter[] {
	return parameters.length === 0 && instructions !== null ? [TASK] : parameters
}

async function textOf(agent: AgentRef, skill: UsableSkill, args: Record<string, string>): Promise<string> {
	const { name, parameters, instructions } = skill
	const { task, ...rest } = args
	const hasTask = parameters.length === 0 && instructions !== null
	const given = JSON.stringify(readArguments(skill, hasTask ? rest : args))
	const shown = JSON.stringify(name)
	if (instructions === null)
		return `Let the agent ${JSON.stringify(agent.name)} use its skill ${shown}: call run_agent with agent ${JSON.stringify(agent.name)} and the prompt below, and tell me its answer.\n\nUse your skill ${shown}${parameters.length > 0 ? ` with these arguments: ${given}` : ''}.`
	const parts = [
		`Follow these instructions, the skill ${shown}${parameters.length > 0 ? `, with these arguments: ${given}` : ''}.`,
		...(hasTask && task !== undefined && task !== '' ? [`The task: ${task}`] : []),
		excerpt(instructions, INSTRUCTIONS),
	]
	return parts.join('\n\n')
}

function readArguments(skill: UsableSkill, args: Record<string, string>): Record<string, unknown> {
	try {
		return skill.read(args)
	} catch (error) {
		if (!isFault(error, 'invalid_arguments')) throw error
		throw new Fault('invalid_request', error.message, { cause: error })
	}
}

/** The position after a page: the last agent and its last prompt. Null: all prompts of the agent were listed. */
type Cursor = [agent: string, skill: string | null]

function writeCursor(cursor: Cursor): string {
	return Buffer.from(JSON.stringify(cursor)).toString('base64url')
}

function readCursor(text: string): Cursor {
	const cursor = text.length <= CURSOR ? jsonIn(Buffer.from(text, 'base64url').toString()) : undefined
	const [agent, skill] = Array.isArray(cursor) ? (cursor as unknown[]) : []
	if (typeof agent === 'string' && (skill === null || typeof skill === 'string')) return [agent, skill]
	throw new Fault('invalid_request', 'the cursor is invalid; send the nextCursor of the previous page')
}
