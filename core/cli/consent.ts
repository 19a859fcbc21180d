import { CliError } from './contract.ts'
import type { Cli } from './contract.ts'

/** The option of every command that asks first. */
export const yesOption = { '-y, --yes': 'do not ask first' } as const

/** Returns if the user agrees, at the prompt or with `--yes`; throws a `CliError` otherwise. */
export async function consent(cli: Cli, { yes }: { yes?: boolean }, question: string): Promise<void> {
	if (yes) return
	if (!cli.ask.canAsk) throw new CliError('usage', `${question} Without a terminal, add --yes to proceed.`)
	if (!(await cli.ask.confirm(question))) throw new CliError('failed', 'Nothing was changed.')
}
