import type { Work } from './work.ts'

/** The text for the agent's model: without secrets, except those that a grant reveals to it, and those of `also`. */
export async function forModel<T>(
	{ ctx, agent, log }: Pick<Work, 'ctx' | 'agent' | 'log'>,
	data: T,
	also: ReadonlySet<string> = new Set(),
): Promise<T> {
	if (!log.redactor.active) return data
	// If the vault does not know what is revealed, nothing is.
	const revealed = await ctx
		.find('vault')
		?.revealed(agent)
		.catch(() => undefined)
	return log.redactor.data(data, 'model', revealed?.union(also) ?? also)
}
