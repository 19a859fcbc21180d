/** Reads the user's answer to a question at the terminal. */
import type { Cli } from '../../../core/cli/contract.ts'
import type { Question } from './run-record.ts'

/**
 * Returns the answer as one text, for an approval such as `edit {"path": "notes.txt"}`. `shown`: the displayed question. `other`:
 * the label of an additional option, for any other answer.
 */
export async function readAnswer(
	{ ask }: Pick<Cli, 'ask'>,
	{ kind, question, options = [] }: Question,
	{ shown = question, other, ...until }: { shown?: string; other?: string; signal?: AbortSignal } = {},
): Promise<string> {
	if (options.length === 0) return ask.text(shown, until)
	if (kind === 'approval') {
		const chosen = await ask.choice(shown, options, until)
		if (chosen === 'edit') return `edit ${await ask.text('All arguments, as one JSON object:', until)}`
		if (chosen === 'refuse') return `refuse ${await ask.text('Why? The model gets the reason.', until)}`
		return chosen
	}
	const chosen = await ask.choice(shown, other === undefined ? options : [...options, other], until)
	return chosen === other ? ask.text('What?', until) : chosen
}
