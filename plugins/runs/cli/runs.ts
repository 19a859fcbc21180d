import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli, Style } from '../../../core/cli/contract.ts'
import { followRun, readRun } from './follow-run.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { PAGE, pages } from '../../../core/cli/pages.ts'
import type { Run } from './run-record.ts'
import { saveFiles } from './files.ts'
import type { AnswerFile } from '../contract.ts'
import type { KeptRequest } from '../requests.ts'
import type { RunStep } from '../steps.ts'
import { shortId } from '../../../core/cli/short-ids.ts'
import { runIdOf } from '../../../core/cli/run-id.ts'
import { when } from '../../../core/cli/when.ts'
import { defined } from '../../../core/util/defined.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { costText } from '../../shared/cost-text.ts'

export default {
	examples: `
The beginning or end of a run's id is enough if it is unique.

Examples:
  svc runs
  svc runs list ada --status failed
  svc runs show 32d6e42c
  svc runs steps 32d6e42c
  svc runs files 32d6e42c --to .
  svc runs retry 32d6e42c
  svc runs follow 01a2000b-1d30-7000-a99c-5be232d6e42c
  svc runs list ada --json | jq -r '.[].run_id'`,
	commands: {
		list: {
			description: 'List the runs of an agent or of all agents, newest first',
			arguments: '[agent]',
			options: {
				'--status <status>': 'queued, started, paused, completed, failed or stopped',
				'--limit <n>': { about: 'how many', max: 10_000, default: 20 },
				'--full': 'show whole ids, not only their ends; --json always does',
			},
			async run(cli, { agent, ...options }: { agent?: string; status?: string; limit: number; full?: boolean }) {
				const { status, full } = options
				const runs = agent === undefined ? await listAll(cli, options) : await list(cli, agent, options)
				const start = `No runs yet. Start one: svc run ${agent ?? 'AGENT'} "Hello"`
				answerTable(cli, runs, status === undefined ? start : `No run is ${status}.`, (run, style) => ({
					run: full ? run.run_id : shortId(run.run_id),
					agent: run.agent,
					status: coloured(run, style),
					by: run.trigger,
					created: when(run.created_at),
					prompt: run.prompt,
				}))
			},
		},
		show: {
			description: 'Show a run: prompt, answer, error, tokens',
			arguments: '<run>',
			async run(cli, { run: run_id }: { run: string }) {
				cli.out.answer(await readRun(cli, await runIdOf(cli, run_id)), shown)
			},
		},
		steps: {
			description: 'Show the model calls and tool calls of a run, with times, tokens and cost',
			arguments: '<run>',
			options: { '--requests': 'show the requests to the model instead, if they are kept (runs.keep_requests)' },
			async run(cli, { run: typed, requests }: { run: string; requests?: boolean }) {
				const run_id = await runIdOf(cli, typed)
				const { steps } = await cli.api.request<{ steps: RunStep[] }>('GET', path`/v1/runs/${run_id}/steps`)
				if (requests) return cli.out.answer(await requestsOf(cli, run_id, steps), shownRequests)
				answerTable(cli, steps, 'The run has not begun.', rowOf)
			},
		},
		files: {
			description: 'List the files of an answer, or save them',
			arguments: '<run>',
			options: { '--to <folder>': 'save them in this folder; existing files are never overwritten' },
			async run(cli, { run: typed, to }: { run: string; to?: string }) {
				const run = await readRun(cli, await runIdOf(cli, typed))
				const files = to === undefined ? (run.files ?? []) : await saveFiles(cli, run, to)
				answerTable<AnswerFile & { path?: string }>(cli, files, 'The answer has no files.', (one) => ({
					file: one.path ?? one.name,
					type: one.media_type,
					bytes: one.size,
				}))
			},
		},
		follow: {
			description: 'Follow a run to its end; Ctrl-C leaves it alone',
			arguments: '<run>',
			async run(cli, { run: run_id }: { run: string }) {
				await followRun(cli, await runIdOf(cli, run_id))
			},
		},
		cancel: {
			description: 'Cancel a run, and the sub-agents that it started',
			arguments: '<run>',
			async run(cli, { run: typed }: { run: string }) {
				const run_id = await runIdOf(cli, typed)
				const run = await cli.api.request<Run>('POST', path`/v1/runs/${run_id}/cancel`)
				cli.out.answer(run, () => `Cancelled ${run_id}.`)
			},
		},
		retry: {
			description: 'Start failed or stopped runs again, each as a new run of its conversation',
			arguments: '<run...>',
			async run(cli, { run: typed }: { run: string[] }) {
				const started: Run[] = []
				let failed = 0
				for (const one of typed) {
					try {
						const run_id = await runIdOf(cli, one)
						started.push(await cli.api.request<Run>('POST', path`/v1/runs/${run_id}/retry`))
					} catch (error) {
						// The others can be started nevertheless.
						if (!(error instanceof CliError) || typed.length === 1) throw error
						cli.out.note(error.message)
						failed++
					}
				}
				cli.out.answer(
					started,
					(all) => `Started ${pluralize(all.length, 'run')}: ${all.map((one) => one.run_id).join(' ')}`,
				)
				if (failed > 0) throw new CliError('failed', `${pluralize(failed, 'run')} could not be started again`)
			},
		},
	},
} satisfies Command

async function listAll(cli: Cli, { status, limit }: { status?: string; limit: number }): Promise<Run[]> {
	const found = pages<{ runs: Run[] }>(cli, '/v1/runs', 'runs', limit, defined({ status }))
	return (await Array.fromAsync(found)).flatMap(({ runs }) => runs)
}

/** A page may be shorter than its limit, so pages are requested until one is empty. */
async function list(cli: Cli, agent: string, { status, limit }: { status?: string; limit: number }): Promise<Run[]> {
	const found: Run[] = []
	while (found.length < limit) {
		const count = String(Math.min(PAGE, limit - found.length))
		const query = new URLSearchParams(defined({ limit: count, status, before: found.at(-1)?.run_id }))
		const page = await cli.api.request<Run[]>('GET', `${path`/v1/agents/${agent}/runs`}?${query.toString()}`)
		if (page.length === 0) break
		found.push(...page)
	}
	return found
}

function rowOf(step: RunStep) {
	const { started_at, duration_ms: ms } = step
	const [usage, name, ended] =
		step.kind === 'tool'
			? [null, step.parent_call_id === null ? step.name : `  ${step.name}`, ms === null ? '' : 'ok']
			: [step.usage, `${step.provider} (${step.model})`, step.finish_reason]
	return {
		began: when(started_at),
		step: name,
		ms,
		tokens: usage && `${usage.input_tokens} in, ${usage.output_tokens} out`,
		cost: usage?.cost === undefined ? '' : costText(usage.cost),
		ended: step.error ?? ended,
	}
}

type StepRequest = KeptRequest & { step: number }

async function requestsOf(cli: Cli, run_id: string, steps: readonly RunStep[]): Promise<StepRequest[]> {
	const found: StepRequest[] = []
	for (const one of steps) {
		if (one.kind !== 'model') continue
		const { step, requests } = await cli.api.request<{ step: number; requests: KeptRequest[] }>(
			'GET',
			path`/v1/runs/${run_id}/steps/${String(one.step)}/requests`,
		)
		found.push(...requests.map((request) => ({ step, ...request })))
	}
	return found
}

function shownRequests(all: StepRequest[], style: Style): string {
	if (all.length === 0)
		return 'No request of this run is kept; runs.keep_requests in gateway.yaml keeps those of later runs.'
	return all
		.map((one) => {
			const fields = style.fields([
				['step', one.step],
				['sent', when(one.sent_at)],
				['model', `${one.provider} (${one.model})`],
				['size', `${one.size} characters${one.truncated ? ', of which the first are kept' : ''}`],
			])
			return `${fields}\n${one.body}`
		})
		.join('\n\n')
}

function coloured({ status, error }: Run, style: Style): string {
	if (status === 'completed') return style.good(status)
	return status === 'failed'
		? style.bad(error ? `${status}: ${error.code}` : status)
		: status === 'paused'
			? style.warn(status)
			: status
}

function shown(run: Run, style: Style): string {
	const { usage, error, open_question: question } = run
	const known = (name: string, value: unknown): [string, unknown][] =>
		value === null || value === undefined ? [] : [[name, value]]
	return style.fields([
		['run', run.run_id],
		['agent', run.agent],
		['status', coloured(run, style)],
		['by', run.trigger],
		['conversation', run.conversation],
		...known('parent', run.parent_run_id),
		['created', when(run.created_at)],
		['ended', when(run.ended_at)],
		['tokens', `${usage.input_tokens} in, ${usage.output_tokens} out`],
		...known('cost', usage.cost === undefined ? undefined : costText(usage.cost)),
		...known('finish reason', run.finish_reason),
		['prompt', run.prompt],
		...known('asks', question && `${question.question} (svc questions answer ${run.agent} ${question.question_id} …)`),
		error ? ['error', error.message] : ['answer', run.answer],
		...known('files', run.files?.map(({ name }) => name).join(', ')),
	])
}
