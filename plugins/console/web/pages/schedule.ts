import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, loading, Page, submitted, table } from '../page.ts'
import { agentHead } from './agent-head.ts'

interface Heartbeat {
	id: string
	cron: string | null
	timezone: string | null
	every: string | null
	at: string | null
	prompt: string
	next_at: string | null
	paused: boolean
}

/** The heartbeats of one agent. */
class Schedule extends Page {
	static override properties = { agent: { attribute: false } }
	declare agent: string
	#heartbeats: Heartbeat[] | undefined

	async enter(): Promise<void> {
		this.#heartbeats = await get<Heartbeat[]>(path`/v1/agents/${this.agent}/heartbeats`, this.signal)
	}

	protected content(): TemplateResult {
		return html`
			${agentHead(this.agent, 'schedule')} ${this.#list()}
			<form class="card narrow" @submit=${this.#add}>
				<h2>New heartbeat</h2>
				<label>When <input name="when" required autocomplete="off" placeholder="0 9 * * 1-5 (cron), or 30m" /></label>
				<label>Prompt <textarea name="prompt" rows="3" required></textarea></label>
				<button class="primary">Create</button>
			</form>
		`
	}

	#list(): TemplateResult {
		if (!this.#heartbeats) return loading
		if (this.#heartbeats.length === 0) return empty('The agent has no schedule yet.')
		return table(
			['When', 'Prompt', 'Next', ''],
			this.#heartbeats.map(
				(one) =>
					html`<tr>
						<td>${one.cron ?? (one.every === null ? 'once' : `every ${one.every}`)} ${one.timezone ?? nothing}</td>
						<td class="wide">${one.prompt}</td>
						<td>${one.paused ? 'paused' : one.next_at === null ? '–' : when(one.next_at)}</td>
						<td>
							<button @click=${() => this.apply('PATCH', this.#at(one), { paused: !one.paused })}>
								${one.paused ? 'Resume' : 'Pause'}
							</button>
							${this.deleteButton('Delete', 'Delete this heartbeat?', this.#at(one))}
						</td>
					</tr>`,
			),
		)
	}

	#add(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		const time = text('when').trim()
		const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone
		const at = time.includes(' ') ? { cron: time, timezone } : { every: time }
		this.apply('POST', path`/v1/agents/${this.agent}/heartbeats`, { ...at, prompt: text('prompt') }, form)
	}

	#at({ id }: Heartbeat): string {
		return path`/v1/agents/${this.agent}/heartbeats/${id}`
	}
}

customElements.define('svc-schedule', Schedule)
