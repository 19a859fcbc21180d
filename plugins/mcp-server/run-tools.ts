/** Tools that start, read and stop runs. */
import { Joi } from '../../core/util/lazy-joi.ts'
import { Fault } from '../../core/errors.ts'
import type { OpenQuestion, NewMessage, RunRecord, RunStatus } from '../runs/contract.ts'
import type { ServedTool, CallOutcome } from './call.ts'
import { agentArgument } from './agent-tools.ts'
import { follow, stateOf } from './follow.ts'
import { run as runSchema, status, viewBriefly, viewRun } from './views.ts'
import type { RunState } from './views.ts'

const PROMPT_BYTES = 100 * 1024
const LIST_DEFAULT = 20
const LIST_LIMIT = 100
const runId = Joi.string().min(1).max(64).required().description('Id of the run.')
const wait = Joi.boolean()
	.default(true)
	.description(
		'Whether to wait for the end of the run (default), or to return immediately while it continues (see get_run).',
	)

const runAgent: ServedTool = {
	name: 'run_agent',
	title: 'Run an agent',
	description:
		'Gives an agent a prompt and returns its final answer. The agent works with its own tools and memory. If it asks a question, the result contains that question: answer it with answer_question.',
	scope: 'runs:write',
	input: Joi.object({
		agent: agentArgument,
		prompt: Joi.string().min(1).max(PROMPT_BYTES, 'utf8').required().description('What to do; at most 100 KiB.'),
		conversation: Joi.string()
			.pattern(/^[A-Za-z0-9._-]{1,64}$/, '1 to 64 of A-Z a-z 0-9 . _ -')
			.description(
				'A name of your choice. Runs with the same name see the earlier messages, also in later sessions. Default: a conversation of this session.',
			),
		wait,
	}),
	output: runSchema,
	annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
	async run(ctx, args: { agent: string; prompt: string; conversation?: string; wait: boolean }, call) {
		const runs = ctx.use('runs')
		const agent = await ctx.use('agents').get(args.agent)
		const conversation = call.conversation(args.conversation)
		const message: NewMessage = { prompt: args.prompt, conversation, trigger: 'mcp', answerTo: refuse }
		if (!args.wait) return outcomeOf(await stateOf(runs, (await runs.converse(agent, message)).run_id))
		const state = await follow(ctx, call, (listener) => runs.converse(agent, message, listener))
		if (call.cancelled) await runs.stop(state.run.run_id)
		return outcomeOf(state)
	},
}

const answerQuestion: ServedTool = {
	name: 'answer_question',
	title: 'Answer a question of an agent',
	description: 'Answers the open question of a run, so that it continues. Then behaves like run_agent.',
	scope: 'runs:write',
	input: Joi.object({
		run_id: runId.description('Id of the run that asks.'),
		question_id: Joi.string().min(1).max(64).required(),
		answer: Joi.string().allow('').max(PROMPT_BYTES, 'utf8').required().description('At most 100 KiB.'),
		wait,
	}),
	output: runSchema,
	annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
	async run(ctx, args: { run_id: string; question_id: string; answer: string; wait: boolean }, call) {
		const runs = ctx.use('runs')
		const { run_id, question_id, answer } = args
		const { run, asked } = await stateOf(runs, run_id)
		const agent = { name: run.agent, uid: run.agent_uid }
		const open = (await runs.questions(agent)).find((one) => one.question_id === question_id)
		if (open && open.run_id !== run_id && open.run_id !== asked?.run_id)
			throw new Fault('conflict', `run ${run_id} did not ask that question; it belongs to run ${open.run_id}`)
		await runs.answer(agent, question_id, answer)
		if (!args.wait) return outcomeOf(await stateOf(runs, run_id))
		return outcomeOf(await follow(ctx, call, (listener) => runs.follow(run_id, listener)))
	},
}

const getRun: ServedTool = {
	name: 'get_run',
	title: 'Read a run',
	description: 'Reads a run: its status, its answer once it is completed, and its open question.',
	scope: 'agents:read',
	input: Joi.object({ run_id: runId }),
	output: runSchema,
	annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
	run: async (ctx, { run_id }: { run_id: string }) => successOf(await stateOf(ctx.use('runs'), run_id)),
}

const listRuns: ServedTool = {
	name: 'list_runs',
	title: 'List the runs of an agent',
	description:
		'Lists the runs of an agent, newest first, regardless of who started them. Long answers are cut: get_run returns them complete.',
	scope: 'agents:read',
	input: Joi.object({
		agent: agentArgument,
		status: status.description('Only runs with this status; paused ones may wait for an answer.'),
		limit: Joi.number().integer().min(1).max(LIST_LIMIT).default(LIST_DEFAULT),
		before: Joi.string().max(64).description('Continue after this run_id.'),
	}),
	output: Joi.object({ runs: Joi.array().items(runSchema).required() }),
	annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
	async run(ctx, { agent, ...options }: { agent: string; status?: RunStatus; limit: number; before?: string }) {
		const runs = ctx.use('runs')
		const page = await runs.list(await ctx.use('agents').get(agent), options)
		const states = await Promise.all(page.map(async (run) => ({ run, asked: await runs.asked(run) })))
		return { data: { runs: states.map(viewBriefly) } }
	},
}

const stopRun: ServedTool = {
	name: 'stop_run',
	title: 'Stop a run',
	description: 'Stops a run and the sub-agents that it started. A run that has ended is not changed.',
	scope: 'runs:write',
	input: Joi.object({ run_id: runId }),
	output: runSchema,
	annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
	async run(ctx, { run_id }: { run_id: string }) {
		const runs = ctx.use('runs')
		await runs.stop(run_id)
		return successOf(await stateOf(runs, run_id))
	},
}

const stopAgent: ServedTool = {
	name: 'stop_agent',
	title: 'Stop an agent',
	description: 'Stops every run of an agent, regardless of who started it: active, waiting and paused runs.',
	scope: 'runs:write',
	input: Joi.object({ agent: agentArgument }),
	output: Joi.object({ agent: Joi.string().required(), status: Joi.valid('stopped').required() }),
	annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
	async run(ctx, args: { agent: string }) {
		const agent = await ctx.use('agents').get(args.agent)
		await ctx.use('runs').stopAgent(agent)
		return { data: { agent: agent.name, status: 'stopped' } }
	},
}

export const runTools: readonly ServedTool[] = [runAgent, answerQuestion, getRun, listRuns, stopRun, stopAgent]

/** Another run of the conversation would wait until the question is answered, and so would its caller. */
function refuse(_: RunRecord, { run_id, question_id }: OpenQuestion): never {
	throw new Fault(
		'conflict',
		`this conversation waits for the answer to a question: call answer_question with run_id ${run_id} and question_id ${question_id}, or use another conversation, or stop_run`,
	)
}

function outcomeOf(state: RunState): CallOutcome {
	const { run } = state
	const data = viewRun(state)
	switch (run.status) {
		case 'completed':
			return { data, text: run.answer ?? '' }
		case 'failed':
			return { data, text: `The run failed: ${run.error?.code}: ${run.error?.message}`, failed: true }
		case 'stopped':
			return { data, text: 'The run was stopped.', failed: true }
		default: {
			const continues = `The run ${run.run_id} continues; get_run reads it later, stop_run stops it.`
			return { data, text: state.asked ? questionText(run, state.asked) : continues }
		}
	}
}

/** For a call that itself succeeded, regardless of the run's outcome. */
function successOf(state: RunState): CallOutcome {
	return { ...outcomeOf(state), failed: false }
}

function questionText(run: RunRecord, { run_id, question_id, question, options = [] }: OpenQuestion): string {
	const who = run_id === run.run_id ? `The agent ${run.agent}` : `A sub-agent of ${run.agent}`
	const lines = [`${who} asks: ${question}`, ...options.map((option) => `- ${option}`)]
	return [...lines, '', `Answer it with answer_question, run_id ${run_id} and question_id ${question_id}.`].join('\n')
}
