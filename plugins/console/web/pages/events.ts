import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get } from '../api.ts'
import { when } from '../format.ts'
import { empty, folded, Page, submitted, throttle } from '../page.ts'
import { listen } from '../stream.ts'
import type { GatewayEvent } from '../types.ts'

const PAGE = 100
/** Maximum number of live events on the page. The oldest are dropped. */
const EVENTS_LIMIT = 1_000
/** Minimum time between two updates of the page. */
const SHOW_MS = 200

/** The audit log and live events, newest first. */
class Events extends Page {
	#events: GatewayEvent[] = []
	#next: string | null = null
	#filter: Record<string, string> = {}
	#isLive = false
	#isRead = false
	readonly #showSoon = throttle(SHOW_MS, () => this.requestUpdate())
	#following = new AbortController()

	async enter(): Promise<void> {
		this.#following.abort()
		const following = new AbortController()
		this.#following = following
		this.#events = []
		await listen({
			query: this.#filter,
			signal: AbortSignal.any([this.signal, following.signal]),
			onEvent: (event) => this.#onEvent(event),
			onOpenChange: (open) => {
				this.#isLive = open
				this.requestUpdate()
			},
		})
		const page = await this.#page(null)
		const known = new Set(page.events.map(({ event_id }) => event_id))
		this.#events = [...this.#events.filter(({ event_id }) => !known.has(event_id)), ...page.events]
		this.#next = page.next_cursor
		this.#isRead = true
	}

	async #page(cursor: string | null): Promise<{ events: GatewayEvent[]; next_cursor: string | null }> {
		const query = new URLSearchParams({ ...this.#filter, limit: String(PAGE), ...(cursor !== null && { cursor }) })
		return get(`/v1/audit?${query}`, this.signal)
	}

	#onEvent(event: GatewayEvent): void {
		if (event.event_type === 'model.stream') return
		this.#events = [event, ...this.#events.slice(0, EVENTS_LIMIT - 1)]
		this.#showSoon()
	}

	#submit(event: SubmitEvent): void {
		const { text } = submitted(event)
		const fields = ['agent_id', 'run_id', 'event_type'].map((name) => [name, text(name).trim()])
		this.#filter = Object.fromEntries(fields.filter(([, value]) => value !== ''))
		void this.attempt(() => this.enter())
	}

	#older(): void {
		void this.attempt(async () => {
			const page = await this.#page(this.#next)
			this.#events = [...this.#events, ...page.events]
			this.#next = page.next_cursor
		})
	}

	protected content(): TemplateResult {
		return html`
			<h1>Events ${this.#isLive ? html`<span class="status started">live</span>` : nothing}</h1>
			<form class="row" @submit=${this.#submit}>
				<label>Agent <input name="agent_id" autocomplete="off" /></label>
				<label>Run <input name="run_id" autocomplete="off" /></label>
				<label>Types <input name="event_type" placeholder="run.*,message.*" autocomplete="off" /></label>
				<button>Filter</button>
			</form>
			${this.#isRead && this.#events.length === 0 ? empty('No events match.') : nothing}
			<ol class="timeline">
				${this.#events.map(
					({ event_type, timestamp, agent_id, run_id, payload }) =>
						html`<li class=${/failed|rejected|violation|error/.test(event_type) ? 'bad' : ''}>
							<b>${event_type}</b> <time datetime=${timestamp}>${when(timestamp)}</time>
							${agent_id === null ? nothing : html`<a href="#/agents/${agent_id}">${agent_id}</a>`}
							${run_id === null ? nothing : html`<a href="#/runs/${run_id}">run</a>`} ${folded(payload)}
						</li>`,
				)}
			</ol>
			${this.#next === null ? nothing : html`<button @click=${() => this.#older()}>Show older events</button>`}
		`
	}
}

customElements.define('svc-events', Events)
