import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { inBatches } from '../../../core/cli/in-batches.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { pick } from '../../../core/cli/pick.ts'
import { textOf } from '../../../core/cli/text-input.ts'
import { readAnswer } from './run-question.ts'
import type { Question } from '../contract.ts'
import { when } from '../../../core/cli/when.ts'

export default {
	examples: `
Examples:
  svc questions list
  svc questions answer ada
  svc questions answer ada 48d0d8b679cd4ec9213e5b750adcd531 "yes, go ahead"
  svc questions answer ada 48d0d8b6 'edit {"path": "notes.txt"}'    an approval of a tool call`,
	commands: {
		list: {
			description: 'List the questions that wait for an answer, of one agent or of all',
			arguments: '[agent]',
			async run(cli, { agent }: { agent?: string }) {
				const names =
					agent === undefined
						? (await cli.api.request<{ name: string }[]>('GET', '/v1/agents')).map((one) => one.name)
						: [agent]
				const ofAgent = async (name: string): Promise<(Question & { agent: string })[]> =>
					(await open(cli, name)).map((one) => ({ agent: name, ...one }))
				answerTable(cli, (await inBatches(names, ofAgent)).flat(), 'No open questions.', (one) => ({
					agent: one.agent,
					'question id': one.question_id,
					asked: when(one.asked_at),
					options: one.options?.join(' / '),
					question: one.question,
				}))
			},
		},
		answer: {
			description:
				'Answer a question; its run continues. Without an id, the only open question; without an answer, svc asks for it.',
			arguments: '<agent> [question] [answer...]',
			async run(cli, { agent, question: id, answer: words }: { agent: string; question?: string; answer: string[] }) {
				const asked = await one(cli, agent, id)
				const answer = words.length > 0 ? (await textOf(cli, words)).trimEnd() : await readAnswer(cli, asked)
				const { question_id } = asked
				const done = await cli.api.request('POST', path`/v1/agents/${agent}/ask-responses/${question_id}`, { answer })
				cli.out.answer(done, () => `Answered; follow the run with: svc runs follow ${asked.run_id}`)
			},
		},
	},
} satisfies Command

function open(cli: Cli, agent: string): Promise<Question[]> {
	return cli.api.request<Question[]>('GET', path`/v1/agents/${agent}/questions`)
}

async function one(cli: Cli, agent: string, id: string | undefined): Promise<Question> {
	const list = await open(cli, agent)
	if (id !== undefined) {
		try {
			return pick(list, id, { kind: 'open question', id: (each) => each.question_id, names: () => [] })
		} catch (error) {
			// Probably the user typed the answer without the id.
			if (!(error instanceof CliError) || error.exit !== 'not_found' || list.length === 0) throw error
			throw new CliError('not_found', `${error.message}; give the id before the answer`, { cause: error })
		}
	}
	const [only, ...others] = list
	if (only === undefined) throw new CliError('not_found', `${agent} has no open question`)
	if (others.length === 0) return only
	throw new CliError(
		'usage',
		`${agent} has ${list.length} open questions; give one of these ids: ${list.map((each) => each.question_id).join(', ')}`,
	)
}
