/** Lists that exist for each agent, such as its heartbeats. */
import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'
import { inBatches } from './in-batches.ts'

interface AgentList<T> {
	/** The list of one agent. */
	of(agent: string): Promise<T[]>
	headings: string[]
	row(one: T): (string | number | null | undefined)[]
	/** Shown for an empty list; `agent` is a placeholder if the lists of all agents are empty. */
	empty(agent: string): string
}

/** Each agent takes one request. */
const AGENTS_LIMIT = 200

/** Prints the list of one agent, or those of all with the agent's name in front. */
export async function answerList<T extends object>(
	cli: Cli,
	agent: string | undefined,
	{ of, headings, row, empty }: AgentList<T>,
): Promise<void> {
	if (agent !== undefined)
		return cli.out.answer(await of(agent), (list, style) => style.table(headings, list.map(row), empty(agent)))
	const agents = await cli.api.request<{ name: string }[]>('GET', '/v1/agents')
	const lists = await inBatches(agents.slice(0, AGENTS_LIMIT), async ({ name }) =>
		(await present(of(name))).map((one) => ({ agent: name, ...one })),
	)
	cli.out.answer(lists.flat(), (list, style) =>
		style.table(
			['agent', ...headings],
			list.map((one) => [one.agent, ...row(one)]),
			empty('AGENT'),
		),
	)
	if (agents.length > AGENTS_LIMIT)
		cli.out.note(`These are of the first ${AGENTS_LIMIT} of ${agents.length} agents; name an agent to see its own.`)
}

/** Empty for an agent that was deleted meanwhile. */
async function present<T>(list: Promise<T[]>): Promise<T[]> {
	try {
		return await list
	} catch (error) {
		if (error instanceof CliError && error.exit === 'not_found') return []
		throw error
	}
}
