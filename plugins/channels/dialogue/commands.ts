/** Chat commands that the gateway handles, and the answers to those that read or change the agent. */
import { Fault, isFault } from '../../../core/errors.ts'
import type { AgentRef, Context } from '../../../core/plugin.ts'
import type { AgentRecord } from '../../agents/contract.ts'
import type { Counted } from '../../usage/contract.ts'
import { texts } from './texts.ts'

/** All other text goes to the agent, even with a leading `/`. */
const NAMES = ['start', 'new', 'stop', 'whoami', 'help', 'model', 'usage', 'context', 'compact'] as const

export interface Command {
	name: (typeof NAMES)[number]
	/** The text after the name. Only `/model` and `/start` accept it; links to a bot add one to `/start`. */
	argument?: string
}

const PATTERN = new RegExp(`^/(${NAMES.join('|')})(?:@\\w{1,64})?(?:\\s+(\\S[^]*))?$`, 'i')

type AnswerDeps = Pick<Context, 'use' | 'find'>

const DAY_MS = 24 * 3_600_000
/** Period of the second total of `/usage`. */
const DAYS = 30
/** Limit of a model's name, in characters. */
const MODEL_LIMIT = 200

/** The command of a message that consists only of a command. */
export function commandIn(text: string): Command | undefined {
	const [, found, argument] = PATTERN.exec(text.trim()) ?? []
	const name = NAMES.find((one) => one === found?.toLowerCase())
	if (!name) return undefined
	if (argument === undefined) return { name }
	return name === 'start' || name === 'model' ? { name, argument } : undefined
}

/** Tokens and cost of the agent, today and in the last 30 days, by UTC. */
export async function usageText({ find }: AnswerDeps, { name }: AgentRef): Promise<string> {
	const usage = find('usage')
	if (!usage) return texts.noUsage
	const day = (offset: number): string => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10)
	const between = async (since: string): Promise<Counted> =>
		(await usage.report({ agent_id: name, since, until: day(1), by: 'agent' })).total
	return texts.usage(await between(day(0)), await between(day(1 - DAYS)))
}

/** How much of the model's window the conversation fills. */
export async function contextText({ use }: AnswerDeps, agent: AgentRef, conversation: string): Promise<string> {
	const { tokens, budget, items } = await use('runs').context(await currentAgent({ use }, agent), conversation)
	return texts.context({ tokens, budget, turns: items.filter(({ kind }) => kind === 'turn').length })
}

/** Starts summarizing the conversation. */
export async function compactText({ use }: AnswerDeps, agent: AgentRef, conversation: string): Promise<string> {
	try {
		return texts.compacting(await use('runs').compact(await currentAgent({ use }, agent), conversation))
	} catch (error) {
		if (isFault(error, 'conflict')) return texts.notCompacted(error.message)
		throw error
	}
}

/** Shows the agent's model, or changes it to `wanted`; `default` is the provider's model. */
export async function modelText(
	{ use }: AnswerDeps,
	agent: AgentRef,
	wanted: string | undefined,
	mayChange: boolean,
): Promise<string> {
	if (wanted !== undefined) {
		if (!mayChange) return texts.notYourModel
		if (!/^[\x21-\x7e]+$/.test(wanted) || wanted.length > MODEL_LIMIT) return texts.noModelName
		await currentAgent({ use }, agent)
		await use('agents').update(agent.name, { config: { model: wanted === 'default' ? null : wanted } })
	}
	const { orders, instead_of } = await use('models').choose((await currentAgent({ use }, agent)).config)
	const [{ provider, model } = { provider: '', model: '' }] = orders
	return texts.model({
		provider,
		model,
		isChanged: wanted !== undefined,
		...(instead_of !== undefined && { instead_of }),
	})
}

/** Throws `not_found` if the agent was deleted, even if another agent has the same name now. */
async function currentAgent({ use }: Pick<Context, 'use'>, { name, uid }: AgentRef): Promise<AgentRecord> {
	const agent = await use('agents').get(name)
	if (agent.uid !== uid) throw new Fault('not_found', `agent "${name}" of this chat was deleted; pair the chat again`)
	return agent
}
