import type { Work } from './work.ts'

/** Redacts data for the agent's model: all secrets except those that a grant reveals to it, and those in `also`. */
export async function forModel<T>(
	{ ctx, agent, log }: Pick<Work, 'ctx' | 'agent' | 'log'>,
	data: T,
	also: ReadonlySet<string> = new Set(),
): Promise<T> {
	if (!log.redactor.active) return data
	// If the grants cannot be read, nothing is revealed.
	const revealed = await ctx
		.find('vault')
		?.revealed(agent)
		.catch(() => undefined)
	return log.redactor.data(data, 'model', revealed?.union(also) ?? also)
}
