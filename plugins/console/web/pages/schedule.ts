import { html } from 'lit'
import type { TemplateResult } from 'lit'
import { get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, Page, submitted, table } from '../page.ts'
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
			${agentHead(this.agent, 'schedule')}
			${table(
				['When', ['Prompt', 'wide'], 'Next', ''],
				this.#heartbeats?.map((one) => this.#row(one)),
				empty('The agent has no schedule yet.'),
			)}
			<form class="card narrow" @submit=${this.#add}>
				<h2>New heartbeat</h2>
				<label>When <input name="when" required autocomplete="off" placeholder="0 9 * * 1-5 (cron), or 30m" /></label>
				<label>Prompt <textarea name="prompt" rows="3" required></textarea></label>
				<button class="primary">Create</button>
			</form>
		`
	}

	#row({ id, cron, every, timezone, prompt, paused, next_at }: Heartbeat): unknown[] {
		const at = path`/v1/agents/${this.agent}/heartbeats/${id}`
		return [
			`${cron ?? (every === null ? 'once' : `every ${every}`)} ${timezone ?? ''}`,
			prompt,
			paused ? 'paused' : next_at === null ? '–' : when(next_at),
			html`<button @click=${() => this.apply('PATCH', at, { paused: !paused })}>${paused ? 'Resume' : 'Pause'}</button>
				${this.deleteButton('Delete', 'Delete this heartbeat?', at)}`,
		]
	}

	#add(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		const time = text('when').trim()
		const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone
		const at = time.includes(' ') ? { cron: time, timezone } : { every: time }
		this.apply('POST', path`/v1/agents/${this.agent}/heartbeats`, { ...at, prompt: text('prompt') }, form)
	}
}

customElements.define('svc-schedule', Schedule)
