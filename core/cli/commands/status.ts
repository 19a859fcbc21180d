import { CliError, path } from '../contract.ts'
import type { Cli, Register, Style } from '../contract.ts'
import { inCommands } from '../in-commands.ts'
import { inTurns } from '../in-turns.ts'

interface Health {
	status: 'ok' | 'degraded' | 'starting' | 'draining'
	version: string
	generation: number
	uptime_s: number
	checks: { name: string; ok: boolean; message: string }[]
}

interface Plugin {
	name: string
	state: string
	last_error: string | null
}

interface Channel {
	id: string
	type: string
	connection: string
	last_error: string | null
}

/** What one agent is doing. */
interface Work {
	name: string
	started: number
	waiting: number
	paused: number
	questions: number
}

interface Status extends Health {
	url: string
	/** Why the rest is null, where the gateway refuses a look. */
	denied: string | null
	plugins: Plugin[] | null
	agents: Work[] | null
	/** How many agents there are; `agents` has the first ones. */
	agents_total: number | null
	channels: Channel[] | null
}

/** Each agent takes four requests. */
const AGENTS_LIMIT = 50
const CHANNELS_LIMIT = 64
/** Runs of one state that are counted. */
const RUNS_LIMIT = 100

export const register: Register = (program, cli) => {
	program
		.command('status')
		.description('Show how the gateway is, and what its agents, channels and plugins do')
		.action(async () => {
			const status = await look(cli)
			cli.out.answer(status, shown)
			if (status.status !== 'ok') throw new CliError('failed', '')
		})
		.addHelpText('after', examples)
}

async function look(cli: Cli): Promise<Status> {
	const { api } = cli
	// One that starts or drains says so with 503.
	const health = await api.request<Health>('GET', '/v1/health', undefined, { accept: 503 })
	let denied: string | null = null
	const [plugins, agents, channels] = await Promise.all([
		permitted(api.request<Plugin[]>('GET', '/v1/plugins')),
		permitted(api.request<{ name: string }[]>('GET', '/v1/agents'), (error) => (denied = whyDenied(cli, error))),
		// The plugin may be switched off.
		permitted(channelsOf(cli)),
	])
	return {
		url: api.url,
		...health,
		denied,
		plugins,
		agents: agents && (await workOf(cli, agents.slice(0, AGENTS_LIMIT))),
		agents_total: agents && agents.length,
		channels,
	}
}

async function permitted<T>(asked: Promise<T>, refused?: (error: CliError) => void): Promise<T | null> {
	try {
		return await asked
	} catch (error) {
		if (!(error instanceof CliError) || (error.exit !== 'denied' && error.exit !== 'not_found')) throw error
		refused?.(error)
		return null
	}
}

function whyDenied({ env }: Cli, { code }: CliError): string {
	if (code !== 'unauthorized') return 'the token does not permit agents:read'
	return env.SVC_TOKEN ? 'the token in SVC_TOKEN is not valid here' : 'this gateway needs a token (SVC_TOKEN)'
}

async function workOf({ api }: Cli, agents: { name: string }[]): Promise<Work[]> {
	const count = async (name: string, status: string): Promise<number> =>
		(await api.request<unknown[]>('GET', path`/v1/agents/${name}/runs?status=${status}&limit=${RUNS_LIMIT}`)).length
	const work = async ({ name }: { name: string }): Promise<Work | undefined> => {
		try {
			const [started, waiting, paused, questions] = await Promise.all([
				count(name, 'started'),
				count(name, 'queued'),
				count(name, 'paused'),
				api.request<unknown[]>('GET', path`/v1/agents/${name}/questions`),
			])
			return { name, started, waiting, paused, questions: questions.length }
		} catch (error) {
			if (error instanceof CliError && error.exit === 'not_found') return undefined // deleted meanwhile
			throw error
		}
	}
	return (await inTurns(agents, work)).filter((one) => one !== undefined)
}

async function channelsOf({ api }: Cli): Promise<Channel[]> {
	const { channels } = await api.request<{ channels: { id: string }[] }>('GET', '/v1/channels')
	const details = async ({ id }: { id: string }): Promise<Channel | null> =>
		await permitted(api.request<Channel>('GET', path`/v1/channels/${id}`))
	const found = await inTurns(channels.slice(0, CHANNELS_LIMIT), details)
	return found.flatMap((one) =>
		one ? [{ id: one.id, type: one.type, connection: one.connection, last_error: one.last_error }] : [],
	)
}

function shown(status: Status, style: Style): string {
	const { url, version, uptime_s, checks, plugins, agents, agents_total, channels } = status
	const mood = status.status === 'ok' ? style.good : style.warn
	const lines = [
		`${mood(status.status)} · ${style.plain(url)} · version ${style.plain(version)} · up ${duration(uptime_s)}`,
	]
	for (const check of checks.filter((one) => !one.ok))
		lines.push(style.warn(`${check.name}: ${style.plain(inCommands(check.message), { lines: true })}`))
	for (const { name, state, last_error } of plugins ?? [])
		if (last_error !== null)
			lines.push(style.warn(`plugin ${style.plain(name)} (${state}): ${style.plain(inCommands(last_error))}`))
	if (agents) {
		lines.push(
			'',
			style.table(
				['agent', 'at work', 'waiting', 'paused', 'questions'],
				agents.map(rowOf),
				'No agents yet. Make one: svc agents create ada',
			),
		)
		const more = (agents_total ?? 0) - agents.length
		if (more > 0) lines.push(style.dim(`and ${more} more agents (svc agents list)`))
		const open = agents.filter((one) => one.questions > 0).length
		if (open > 0) lines.push(style.warn(`Questions wait for an answer: svc questions list`))
	} else lines.push('', style.dim(`Agents: ${status.denied ?? 'none can be listed here'}.`))
	if (channels && channels.length > 0)
		lines.push(
			'',
			style.table(
				['channel', 'connection', 'last error'],
				channels.map((one) => [one.type, one.connection, one.last_error && inCommands(one.last_error)]),
			),
		)
	return lines.join('\n')
}

function rowOf({ name, started, waiting, paused, questions }: Work): (string | number)[] {
	const some = (count: number): string => (count >= RUNS_LIMIT ? `${count} or more` : String(count))
	return [name, some(started), some(waiting), some(paused), questions]
}

function duration(seconds: number): string {
	const [d, h, m] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60]
	if (d > 0) return `${d} d ${h} h`
	if (h > 0) return `${h} h ${m} min`
	return m > 0 ? `${m} min` : `${seconds} s`
}

const examples = `
Exit code: 0 all well, 1 it serves and something needs a look, 69 no gateway answers.

Examples:
  svc status
  svc status --json | jq .agents
  SVC_URL=https://gateway.example.com SVC_TOKEN=svc_… svc status`
