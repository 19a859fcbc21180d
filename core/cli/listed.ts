import type { Command, Group, TopCommand } from './command.ts'

/** A built-in command: its heading in `svc --help`, its position under it, its line there, and its code. */
export function listed(
	group: Group,
	order: number,
	summary: string,
	load: () => Promise<{ default: Command }>,
): TopCommand {
	return { group, order, summary, load }
}
