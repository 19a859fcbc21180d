/** Reads the user's answer to an approval at the terminal. */
import type { Cli } from '../../../core/cli/contract.ts'
import type { Question } from './run-record.ts'

/** As the API takes it in one text, such as `edit {"path": "notes.txt"}`. */
export async function askApproval(
	{ ask }: Pick<Cli, 'ask'>,
	shown: string,
	{ options = [] }: Question,
	until: { signal?: AbortSignal } = {},
): Promise<string> {
	const chosen = await ask.choice(shown, options, until)
	if (chosen === 'edit') return `edit ${await ask.text('All arguments, as one JSON object:', until)}`
	if (chosen === 'refuse') return `refuse ${await ask.text('Why? The model gets the reason.', until)}`
	return chosen
}
