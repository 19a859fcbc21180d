import type { WireError } from '../../errors.ts'
import type { Health, PluginStatus } from '../../status.ts'
import type { Command, StatusPart } from '../command.ts'
import { builtInFiles } from '../command-table.ts'
import { notAGateway } from '../connection.ts'
import { CliError } from '../contract.ts'
import type { Api, Cli, Style } from '../contract.ts'
import { permitted } from '../or-null.ts'

interface Status extends Health {
	url: string
	plugins: PluginStatus[] | null
}

export default {
	description: 'Show the state of the gateway, its models, agents, channels and plugins',
	examples: `
Exit code: 0 the gateway itself works, 1 it needs attention, 69 no gateway answers. Failing models and channels are shown, but
do not change the exit code: svc doctor checks them.

Examples:
  svc status
  svc status --json | jq .agents
  svc status --json | jq -e '.model_failure == null'
  SVC_URL=https://gateway.example.com SVC_TOKEN=svc_… svc status`,
	async run(given) {
		const cli: Cli = { ...given, api: briefly(given.api) }
		const { api } = cli
		// A gateway that starts or drains responds with 503 and its health.
		const health = await api.request<Partial<Health & WireError>>('GET', '/v1/health', undefined, { accept: 503 })
		// A waiting gateway on a cluster without a working one responds with 503 and an ordinary error.
		if (!isHealth(health)) {
			const { message, code } = health
			throw message === undefined || code === undefined
				? notAGateway(api.url)
				: new CliError('unavailable', message, { code })
		}
		// During the upgrade of its home, a gateway answers nothing else.
		const parts = health.status === 'migrating' ? [] : await partsOfPlugins()
		const status = await read(cli, health, parts)
		cli.out.answer(status, (value, style) =>
			[...shown(value, style), ...parts.flatMap((part) => part.show(value as never, style))].join('\n'),
		)
		if (status.status !== 'ok') throw new CliError('failed', '')
	},
} satisfies Command

/** Makes all requests brief: a gateway that does not respond is given up on soon. */
function briefly(api: Api): Api {
	return {
		get url() {
			return api.url
		},
		request: (method, path, body, options) => api.request(method, path, body, { ...options, brief: true }),
		events: (query, options) => api.events(query, options),
	}
}

function isHealth(answer: Partial<Health>): answer is Health {
	return Array.isArray(answer.checks)
}

async function partsOfPlugins(): Promise<StatusPart[]> {
	const parts = (await builtInFiles()).flatMap(({ status }) => status ?? [])
	const ordered = parts.toSorted((a, b) => a.order - b.order)
	return Promise.all(ordered.map(async ({ load }) => (await load()).default))
}

async function read(cli: Cli, health: Health, parts: StatusPart[]): Promise<Status> {
	const { api } = cli
	const [plugins, ...facts] = await Promise.all([
		health.status === 'migrating' ? null : permitted(api.request<PluginStatus[]>('GET', '/v1/plugins')),
		...parts.map((part) => part.read(cli)),
	])
	return Object.assign({ url: api.url, ...health, plugins }, ...facts) as Status
}

function shown({ status, url, version, uptime_s, checks, plugins }: Status, style: Style): string[] {
	const colour = status === 'ok' ? style.good : style.warn
	const role = checks.find(({ name }) => name === 'role')
	const threads = checks.find(({ name }) => name === 'threads')
	return [
		`${colour(status)} · ${style.plain(url)} · version ${style.plain(version)} · up ${duration(uptime_s)}`,
		...(role ? [`of several gateways, the one at this address is ${style.plain(role.message)}`] : []),
		...(threads ? [`threads that execute runs: ${style.plain(threads.message)}`] : []),
		...checks
			.filter((one) => !one.ok)
			.map((check) => style.warn(`${check.name}: ${style.plain(check.message, { lines: true })}`)),
		...(plugins ?? []).flatMap(({ name, state, last_error }) =>
			last_error === null ? [] : [style.warn(`plugin ${style.plain(name)} (${state}): ${style.plain(last_error)}`)],
		),
	]
}

function duration(seconds: number): string {
	const [d, h, m] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60]
	if (d > 0) return `${d} d ${h} h`
	if (h > 0) return `${h} h ${m} min`
	return m > 0 ? `${m} min` : `${seconds} s`
}
