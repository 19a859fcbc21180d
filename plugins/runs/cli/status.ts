/** The activity of the agents, for `svc status`. */
import type { StatusPart } from '../../../core/cli/command.ts'
import { path } from '../../../core/cli/contract.ts'
import type { Cli, CliError } from '../../../core/cli/contract.ts'
import { inBatches } from '../../../core/cli/in-batches.ts'
import { tableOf } from '../../../core/cli/lists.ts'
import { tokenFor } from '../../../core/cli/logins.ts'
import { orNull, permitted } from '../../../core/cli/or-null.ts'

/** The activity of one agent. */
interface OpenWork {
	name: string
	started: number
	waiting: number
	paused: number
	questions: number
}

interface Facts {
	/** Why the gateway refuses to list agents; then the other fields are null. */
	denied: string | null
	agents: OpenWork[] | null
	/** Number of agents; `agents` has the first ones. */
	agents_total: number | null
}

/** Limit of agents shown: each needs four requests. */
const AGENTS_LIMIT = 50
/** Limit of runs counted per status. */
const RUNS_LIMIT = 100

export default {
	async read(cli: Cli): Promise<Facts> {
		let denied: string | null = null
		const agents = await permitted(
			cli.api.request<{ name: string }[]>('GET', '/v1/agents'),
			(error) => (denied = whyDenied(cli, error)),
		)
		return {
			denied,
			agents: agents && (await workOf(cli, agents.slice(0, AGENTS_LIMIT))),
			agents_total: agents && agents.length,
		}
	},
	show({ denied, agents, agents_total }: Facts, style) {
		if (!agents) return ['', style.dim(`Agents: ${denied ?? 'they cannot be listed here'}.`)]
		const more = (agents_total ?? 0) - agents.length
		return [
			'',
			tableOf(agents, style, 'No agents yet. Create one: svc agents create ada', rowOf),
			...(more > 0 ? [style.dim(`and ${more} more agents (svc agents list)`)] : []),
			...(agents.some((one) => one.questions > 0)
				? [style.warn('Questions wait for an answer: svc questions list')]
				: []),
		]
	},
} satisfies StatusPart

function whyDenied({ env, home, api }: Cli, { code }: CliError): string {
	if (code !== 'unauthorized') return 'the token does not permit agents:read'
	if (env.SVC_TOKEN) return 'the token in SVC_TOKEN is not valid here'
	return tokenFor(env, home, api.url) === undefined
		? 'this gateway needs a token (svc login, or SVC_TOKEN)'
		: 'the token that svc login stored is not valid here; log in again'
}

async function workOf({ api }: Cli, agents: { name: string }[]): Promise<OpenWork[]> {
	const count = async (name: string, status: string): Promise<number> =>
		(await api.request<unknown[]>('GET', path`/v1/agents/${name}/runs?status=${status}&limit=${RUNS_LIMIT}`)).length
	const work = async ({ name }: { name: string }): Promise<OpenWork> => {
		const [started, waiting, paused, questions] = await Promise.all([
			count(name, 'started'),
			count(name, 'queued'),
			count(name, 'paused'),
			api.request<unknown[]>('GET', path`/v1/agents/${name}/questions`),
		])
		return { name, started, waiting, paused, questions: questions.length }
	}
	// Null for an agent that was deleted meanwhile.
	return (await inBatches(agents, (agent) => orNull(work(agent), ['not_found']))).filter((one) => one !== null)
}

function rowOf({ name, started, waiting, paused, questions }: OpenWork) {
	const some = (count: number): string => (count >= RUNS_LIMIT ? `${count} or more` : String(count))
	return { agent: name, 'at work': some(started), waiting: some(waiting), paused: some(paused), questions }
}
