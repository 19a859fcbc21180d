import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { modelFailure } from '../../../shared/model-failure.ts'
import type { ModelFailure, ModelOutcome } from '../../../shared/model-failure.ts'
import { get, getIfThere, path } from '../api.ts'
import type { Series } from '../chart.ts'
import '../chart.ts'
import { cost, count, duration, when } from '../format.ts'
import { choice, loading, Page, status, table } from '../page.ts'
import type { Channel } from './channels.ts'
import type { Plugin } from './plugins.ts'

interface Health {
	status: string
	version: string
	uptime_s: number
	checks: { name: string; ok: boolean; message: string }[]
}

interface UsageRow {
	agent_id?: string
	day?: string
	calls: number
	input_tokens: number
	output_tokens: number
	cost: number | null
	runs?: { completed: number; failed: number; p50_s: number | null; p95_s: number | null }
}

interface Report {
	/** The first day, and the day after the last one. */
	since: string
	until: string
	rows: UsageRow[]
}

/** Maximum number of channels whose state is shown. */
const CHANNELS_LIMIT = 20

/** The health of the gateway, and the usage of its agents. */
class Home extends Page {
	#health: Health | undefined
	#plugins: Plugin[] = []
	/** One row per day, oldest first. */
	#days: UsageRow[] = []
	#agents: UsageRow[] = []
	#channels: Channel[] = []
	#modelFailure: ModelFailure | null = null
	/** Undefined for a caller without the permission; null if there is none. */
	#backup: { created_at: string } | null | undefined
	/** The agent in the charts; empty: all. */
	#agent = ''

	async enter(): Promise<void> {
		const { signal } = this
		const usage = (at: string) => get<Report>(at, signal)
		const [health, plugins, days, agents] = await Promise.all([
			get<Health>('/v1/health', signal),
			get<Plugin[]>('/v1/plugins', signal),
			usage(daysOf(this.#agent)),
			usage('/v1/usage?by=agent'),
		])
		await this.#readOptional()
		this.#health = health
		this.#plugins = plugins
		this.#days = everyDay(days)
		this.#agents = agents.rows
	}

	/** Reads what not every reader of this page may see. */
	async #readOptional(): Promise<void> {
		const { signal } = this
		const [listed, saved, providers] = await Promise.all([
			getIfThere<{ channels: { id: string }[] }>('/v1/channels', signal),
			getIfThere<{ backups: { created_at: string }[] }>('/v1/backups', signal),
			getIfThere<{ name: string; is_default: boolean }[]>('/v1/providers', signal),
		])
		const read = (at: string) => getIfThere<{ events: ModelOutcome[] }>(at, signal)
		this.#modelFailure = await modelFailure(read, providers?.find((one) => one.is_default)?.name)
		const ids = listed?.channels.slice(0, CHANNELS_LIMIT).map(({ id }) => id) ?? []
		const channels = await Promise.all(ids.map((id) => getIfThere<Channel>(path`/v1/channels/${id}`, signal)))
		this.#channels = channels.filter((channel) => channel !== undefined)
		this.#backup = saved && (saved.backups.at(-1) ?? null)
	}

	protected content(): TemplateResult {
		if (!this.#health) return loading
		const { status: now, version, uptime_s, checks } = this.#health
		return html`
			<h1>Home ${status(now)}</h1>
			<p class="note">Version ${version}, running for ${duration(uptime_s * 1000)}.</p>
			<section>
				<h2>Health</h2>
				<ul class="checks">
					${checks.map(({ name, ok, message }) => check(ok, name, message))}
					${this.#modelFailure ? modelCheck(this.#modelFailure) : nothing}
					${this.#channels.map(({ type, bot, connection, last_error }) =>
						check(
							connection === 'connected',
							`Channel ${type} ${bot ?? ''}`,
							`${connection}${last_error === null ? '' : `: ${last_error}`}`,
						),
					)}
					${this.#plugins.map(({ name, last_error }) =>
						last_error === null ? nothing : check(false, `Plugin ${name}`, last_error),
					)}
				</ul>
				${
					this.#backup === undefined
						? nothing
						: html`<p class="note">
								${this.#backup === null ? 'There is no backup yet.' : `The last backup was taken at ${when(this.#backup.created_at)}.`}
								<a href="#/backups">Backups</a>
							</p>`
				}
			</section>
			${
				this.#agents.length === 0
					? html`<p class="empty">There were no runs in the last 30 days. <a href="#/chat">Talk to an agent</a></p>`
					: this.#usage()
			}
		`
	}

	#usage(): TemplateResult {
		const days = this.#days.map(({ day }) => day ?? '')
		const of = (value: (row: UsageRow) => number | null | undefined): (number | null)[] =>
			this.#days.map((row) => value(row) ?? null)
		const chart = (name: string, format: (value: number) => string, ...series: Series[]): TemplateResult =>
			html`<figure class="card">
				<figcaption>${name}</figcaption>
				<svc-chart .name=${name} .days=${days} .series=${series} .format=${format}></svc-chart>
			</figure>`
		const agents = this.#agents.map(({ agent_id }) => agent_id ?? '')
		const hasCost = this.#days.some((row) => row.cost !== null)
		return html`
			<section>
				<h2>Last 30 days</h2>
				<div class="row">${choice('Agent', agents, this.#agent, (agent) => this.#choose(agent), 'all')}</div>
				<div class="charts">
					${chart(
						'Runs by day',
						count,
						{ label: 'Completed', color: '--good', values: of((row) => row.runs?.completed) },
						{ label: 'Failed', color: '--bad', values: of((row) => row.runs?.failed) },
					)}
					${chart(
						'Duration of runs',
						seconds,
						{ label: 'Median', color: '--accent', values: of((row) => row.runs?.p50_s) },
						{ label: '95th percentile', color: '--warn', values: of((row) => row.runs?.p95_s) },
					)}
					${chart(
						'Tokens by day',
						count,
						{ label: 'In', color: '--accent', values: of((row) => row.input_tokens) },
						{ label: 'Out', color: '--warn', values: of((row) => row.output_tokens) },
					)}
					${hasCost ? chart('Cost by day', cost, { label: 'Cost', color: '--accent', values: of((row) => row.cost) }) : nothing}
				</div>
				<details>
					<summary>As a table</summary>
					${this.#table(
						'Day',
						this.#days.filter(isUsed).map((row) => [row.day ?? '', row]),
					)}
				</details>
			</section>
			<section>
				<h2>By agent, last 30 days</h2>
				${this.#table(
					'Agent',
					this.#agents.map((row) => [row.agent_id ?? '', row]),
				)}
			</section>
		`
	}

	#choose(agent: string): void {
		this.#agent = agent
		void this.attempt(async () => {
			const report = await get<Report>(daysOf(agent), this.signal)
			if (this.#agent === agent) this.#days = everyDay(report)
		})
	}

	#table(what: string, rows: [label: string, row: UsageRow][]): TemplateResult {
		const total = ({ input_tokens, output_tokens }: UsageRow): number => input_tokens + output_tokens
		const most = Math.max(1, ...rows.map(([, row]) => total(row)))
		return table(
			[[what, 'name'], 'Tokens', 'Runs', 'Failed', 'Median', 'Calls', 'Cost'],
			rows.map(([label, row]) => [
				label,
				html`<meter min="0" max=${most} value=${total(row)} aria-label="Tokens of ${label}"></meter>
					${count(total(row))}`,
				count((row.runs?.completed ?? 0) + (row.runs?.failed ?? 0)),
				count(row.runs?.failed ?? 0),
				seconds(row.runs?.p50_s ?? null),
				count(row.calls),
				cost(row.cost),
			]),
		)
	}
}

function modelCheck({ at, provider, message }: ModelFailure): TemplateResult {
	const text = `the last call${provider === null ? '' : ` to ${provider}`} failed at ${when(at)}: ${message}`
	return check(false, 'models', html`${text} <a href="#/runs?status=failed">Failed runs</a>`)
}

function check(isGood: boolean, what: string, text: unknown): TemplateResult {
	return html`<li class=${isGood ? 'good' : 'bad'}><b>${what}</b> <span class="lines">${text}</span></li>`
}

/** Adds the days without runs, which a report leaves out. */
function everyDay({ since, until, rows }: Report): UsageRow[] {
	const byDay = new Map(rows.map((row) => [row.day, row]))
	const days: UsageRow[] = []
	for (let time = Date.parse(since); time < Date.parse(until); time += 86_400_000) {
		const day = new Date(time).toISOString().slice(0, 10)
		const runs = { completed: 0, failed: 0, p50_s: null, p95_s: null }
		days.push(byDay.get(day) ?? { day, calls: 0, input_tokens: 0, output_tokens: 0, cost: null, runs })
	}
	return days
}

function isUsed({ calls, runs }: UsageRow): boolean {
	return calls > 0 || (runs?.completed ?? 0) + (runs?.failed ?? 0) > 0
}

function seconds(value: number | null): string {
	return value === null ? '–' : duration(value * 1000)
}

function daysOf(agent: string): string {
	return `/v1/usage?${new URLSearchParams({ by: 'day', ...(agent !== '' && { agent_id: agent }) })}`
}

customElements.define('svc-home', Home)
