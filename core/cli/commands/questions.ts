import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { inTurns } from '../in-turns.ts'
import { pick } from '../pick.ts'
import type { Question } from '../run-question.ts'
import { when } from '../when.ts'

interface OpenQuestion extends Question {
	run_id: string
	asked_at: string
}

export const register: Register = (program, cli) => {
	const { api, out } = cli
	const questions = program
		.command('questions')
		.description('List and answer what agents ask')
		.addHelpText('after', examples)

	questions
		.command('list [agent]')
		.description('List the questions that wait for an answer, of one agent or of all')
		.action(async (agent?: string) => {
			const names =
				agent === undefined
					? (await api.request<{ name: string }[]>('GET', '/v1/agents')).map((one) => one.name)
					: [agent]
			const ofAgent = async (name: string): Promise<(OpenQuestion & { agent: string })[]> =>
				(await open(name)).map((one) => ({ agent: name, ...one }))
			out.answer((await inTurns(names, ofAgent)).flat(), (all, style) =>
				style.table(
					['agent', 'question id', 'asked', 'options', 'question'],
					all.map((one) => [one.agent, one.question_id, when(one.asked_at), one.options?.join(' / '), one.question]),
					'No questions: nobody waits for an answer.',
				),
			)
		})

	questions
		.command('answer <agent> [question] [answer...]')
		.description(
			'Answer a question; its run goes on. Without an answer it is asked for; without an id, the only question.',
		)
		.action(async (agent: string, id: string | undefined, words: string[]) => {
			const asked = await one(agent, id)
			const answer = words.length > 0 ? await answerOf(words) : await ask(asked)
			const { question_id } = asked
			const done = await api.request('POST', path`/v1/agents/${agent}/ask-responses/${question_id}`, { answer })
			out.answer(done, () => `Answered; follow the run with: svc runs follow ${asked.run_id}`)
		})

	function open(agent: string): Promise<OpenQuestion[]> {
		return api.request<OpenQuestion[]>('GET', path`/v1/agents/${agent}/questions`)
	}

	async function one(agent: string, id: string | undefined): Promise<OpenQuestion> {
		const list = await open(agent)
		if (id !== undefined)
			return pick(list, id, { kind: 'open question', id: (each) => each.question_id, names: () => [] })
		const [only, ...others] = list
		if (only === undefined) throw new CliError('not_found', `${agent} asks nothing`)
		if (others.length === 0) return only
		throw new CliError(
			'usage',
			`${agent} asks ${list.length} questions; name one of: ${list.map((each) => each.question_id).join(', ')}`,
		)
	}

	async function answerOf(words: string[]): Promise<string> {
		return words.length === 1 && words[0] === '-' ? String(await cli.ask.input()).trimEnd() : words.join(' ')
	}

	function ask({ question, options }: Question): Promise<string> {
		return options && options.length > 0 ? cli.ask.choice(question, options) : cli.ask.text(question)
	}
}

const examples = `
Examples:
  svc questions list
  svc questions answer ada
  svc questions answer ada 48d0d8b679cd4ec9213e5b750adcd531 "yes, go ahead"`
