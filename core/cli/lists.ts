/** Lists as tables for people, and as they are with --json. */
import type { Cli, Style } from './contract.ts'
import { inBatches } from './in-batches.ts'
import { orNull } from './or-null.ts'

/** The cells of one item, by heading: every item has the same headings. */
type Row = Record<string, string | number | null | undefined>

/** Prints a list as a table. `empty`: shown for an empty list, such as how to create the first item. */
export function answerTable<T>({ out }: Cli, list: T[], empty: string, row: (one: T, style: Style) => Row): void {
	out.answer(list, (all, style) => tableOf(all, style, empty, row))
}

/** The table alone, for a list that is part of an answer. */
export function tableOf<T>(list: T[], style: Style, empty: string, row: (one: T, style: Style) => Row): string {
	const rows = list.map((one) => row(one, style))
	return style.table(Object.keys(rows[0] ?? {}), rows.map(Object.values<Row[string]>), empty)
}

/** A list that exists for each agent, such as its heartbeats. */
interface AgentList<T> {
	/** The list of one agent. */
	of(agent: string): Promise<T[]>
	/** Shown for an empty list; `agent` is a placeholder if the lists of all agents are empty. */
	empty(agent: string): string
	row(one: T): Row
}

/** Each agent takes one request. */
const AGENTS_LIMIT = 200

/** Prints the list of one agent, or those of all with the agent's name in front. */
export async function answerList<T extends object>(
	cli: Cli,
	agent: string | undefined,
	{ of, empty, row }: AgentList<T>,
): Promise<void> {
	if (agent !== undefined) return answerTable(cli, await of(agent), empty(agent), row)
	const agents = await cli.api.request<{ name: string }[]>('GET', '/v1/agents')
	const lists = await inBatches(agents.slice(0, AGENTS_LIMIT), async ({ name }) => {
		// Null for an agent that was deleted meanwhile.
		const list = await orNull(of(name), ['not_found'])
		return list?.map((one) => ({ agent: name, ...one })) ?? []
	})
	answerTable(cli, lists.flat(), empty('AGENT'), (one) => ({ agent: one.agent, ...row(one) }))
	if (agents.length > AGENTS_LIMIT)
		cli.out.note(`These are of the first ${AGENTS_LIMIT} of ${agents.length} agents; name an agent to see its own.`)
}
