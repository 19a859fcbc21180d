import { path } from '../contract.ts'
import type { Register, Style } from '../contract.ts'
import { countOption } from '../options.ts'
import { followRun, readRun } from '../follow-run.ts'
import type { Run } from '../follow-run.ts'
import { when } from '../when.ts'

/** The gateway's own limit for one page. */
const PAGE = 500

export const register: Register = (program, cli) => {
	const { api, out } = cli
	const runs = program.command('runs').description('List, read, follow and cancel runs').addHelpText('after', examples)

	runs
		.command('list <agent>')
		.description('List the runs of an agent, newest first')
		.option('--status <status>', 'queued, started, paused, completed, failed or stopped')
		.addOption(countOption('--limit <n>', 'how many', { max: 10_000, fallback: 20 }))
		.action(async (agent: string, options: { status?: string; limit: number }) => {
			out.answer(await list(agent, options), (all, style) =>
				style.table(
					['run', 'status', 'by', 'created', 'prompt'],
					all.map((run) => [run.run_id, coloured(run, style), run.trigger, when(run.created_at), run.prompt]),
					options.status === undefined
						? `No runs yet. Start one: svc run ${agent} "Hello"`
						: `No run is ${options.status}.`,
				),
			)
		})

	runs
		.command('show <run>')
		.description('Show a run: prompt, answer, error, use of tokens')
		.action(async (run_id: string) => out.answer(await readRun(cli, run_id), shown))

	runs
		.command('follow <run>')
		.description('Follow a run to its end; Ctrl-C leaves it alone')
		.action(async (run_id: string) => void (await followRun(cli, run_id)))

	runs
		.command('cancel <run>')
		.description('Cancel a run, and the sub-agents that it started')
		.action(async (run_id: string) => {
			const run = await api.request<Run>('POST', path`/v1/runs/${run_id}/cancel`)
			out.answer(run, () => `Cancelled ${run_id}.`)
		})

	/** A page may be shorter than its limit, so they are asked for until one is empty. */
	async function list(agent: string, { status, limit }: { status?: string; limit: number }): Promise<Run[]> {
		const found: Run[] = []
		while (found.length < limit) {
			const before = found.at(-1)?.run_id
			const query = new URLSearchParams({
				limit: String(Math.min(PAGE, limit - found.length)),
				...(status !== undefined && { status }),
				...(before !== undefined && { before }),
			})
			const page = await api.request<Run[]>('GET', `${path`/v1/agents/${agent}/runs`}?${query.toString()}`)
			if (page.length === 0) break
			found.push(...page)
		}
		return found
	}
}

function coloured({ status }: Run, style: Style): string {
	if (status === 'completed') return style.good(status)
	return status === 'failed' ? style.bad(status) : status === 'paused' ? style.warn(status) : status
}

function shown(run: Run, style: Style): string {
	const { usage, error, open_question: question } = run
	return style.fields([
		['run', run.run_id],
		['agent', run.agent],
		['status', coloured(run, style)],
		['by', run.trigger],
		['conversation', run.conversation],
		...(run.parent_run_id === null ? [] : [['parent', run.parent_run_id] as [string, unknown]]),
		['created', when(run.created_at)],
		['ended', when(run.ended_at)],
		['tokens', `${usage.input_tokens} in, ${usage.output_tokens} out`],
		['prompt', run.prompt],
		...(question
			? [
					['asks', `${question.question} (svc questions answer ${run.agent} ${question.question_id} …)`] as [
						string,
						unknown,
					],
				]
			: []),
		...(error
			? [['error', `${error.message} (${error.code})`] as [string, unknown]]
			: [['answer', run.answer] as [string, unknown]]),
	])
}

const examples = `
Examples:
  svc runs list ada --status failed
  svc runs show 01a2000b-1d30-7000-a99c-5be232d6e42c
  svc runs follow 01a2000b-1d30-7000-a99c-5be232d6e42c
  svc runs list ada --json | jq -r '.[].run_id'`
