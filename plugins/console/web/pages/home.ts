import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get } from '../api.ts'
import { cost, count, duration } from '../format.ts'
import { Page, status } from '../page.ts'

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
}

interface Plugin {
	name: string
	state: string
	last_error: string | null
}

/** How the gateway is, and what its agents used. */
class Home extends Page {
	#health: Health | undefined
	#plugins: Plugin[] = []
	#days: UsageRow[] = []
	#agents: UsageRow[] = []

	async enter(): Promise<void> {
		const { signal } = this.left
		const usage = (by: string) => get<{ rows: UsageRow[] }>(`/v1/usage?by=${by}`, signal)
		const [health, plugins, days, agents] = await Promise.all([
			get<Health>('/v1/health', signal),
			get<Plugin[]>('/v1/plugins', signal),
			usage('day'),
			usage('agent'),
		])
		this.#health = health
		this.#plugins = plugins
		this.#days = days.rows
		this.#agents = agents.rows
	}

	protected content(): TemplateResult {
		if (!this.#health) return html`<p class="empty">Loading …</p>`
		const { status: now, version, uptime_s, checks } = this.#health
		return html`
			<h1>Home ${status(now)}</h1>
			<p class="note">Version ${version}, running for ${duration(uptime_s * 1000)}.</p>
			<section>
				<h2>Health</h2>
				<ul class="checks">
					${checks.map(
						({ name, ok, message }) =>
							html`<li class=${ok ? 'good' : 'bad'}><b>${name}</b> <span class="lines">${message}</span></li>`,
					)}
				</ul>
				${this.#troubled()}
			</section>
			<section>
				<h2>Tokens by day</h2>
				${
					this.#days.length === 0
						? html`<p class="empty">No model was called in the last 30 days. <a href="#/chat">Talk to an agent</a></p>`
						: this.#bars(this.#days.map((row) => [row.day ?? '', row]))
				}
			</section>
			${
				this.#agents.length === 0
					? nothing
					: html`<section>
							<h2>Tokens by agent, last 30 days</h2>
							${this.#bars(this.#agents.map((row) => [row.agent_id ?? '', row]))}
						</section>`
			}
		`
	}

	#troubled(): unknown {
		const bad = this.#plugins.filter((one) => one.last_error !== null)
		if (bad.length === 0) return nothing
		return html`<ul class="checks">
			${bad.map(
				({ name, last_error }) =>
					html`<li class="bad"><b>Plugin ${name}</b> <span class="lines">${last_error}</span></li>`,
			)}
		</ul>`
	}

	#bars(rows: [label: string, row: UsageRow][]): TemplateResult {
		const total = ({ input_tokens, output_tokens }: UsageRow): number => input_tokens + output_tokens
		const most = Math.max(1, ...rows.map(([, row]) => total(row)))
		return html`<div class="scroll">
			<table class="bars">
				<thead>
					<tr>
						<th>${rows[0]?.[1].day === undefined ? 'Agent' : 'Day'}</th>
						<th>Tokens</th>
						<th>Calls</th>
						<th>Cost</th>
					</tr>
				</thead>
				<tbody>
					${rows.map(
						([label, row]) =>
							html`<tr>
								<td>${label}</td>
								<td>
									<meter min="0" max=${most} value=${total(row)} aria-label="Tokens of ${label}"></meter>
									${count(total(row))}
								</td>
								<td>${count(row.calls)}</td>
								<td>${cost(row.cost)}</td>
							</tr>`,
					)}
				</tbody>
			</table>
		</div>`
	}
}

customElements.define('svc-home', Home)
