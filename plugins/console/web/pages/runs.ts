import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { agentNames, get, path } from '../api.ts'
import { excerpt, runTime, tokens, when } from '../format.ts'
import { choice, empty, loading, Page, throttle, status, table } from '../page.ts'
import { listen } from '../stream.ts'
import type { GatewayEvent, Run, RunStatus } from '../types.ts'

const PAGE = 50
const statuses: RunStatus[] = ['queued', 'started', 'paused', 'completed', 'failed', 'stopped']
/** The status of a run after an event. */
const statusAfter: Partial<Record<string, RunStatus>> = {
	'run.queued': 'queued',
	'run.started': 'started',
	'run.paused': 'paused',
	'run.resumed': 'started',
	'run.completed': 'completed',
	'run.failed': 'failed',
	'run.stopped': 'stopped',
}
/** Minimum time between two updates of the page. */
const SHOW_MS = 250
const READ_MS = 1_000

/** The runs of all agents, newest first, live. */
class Runs extends Page {
	#agents: string[] = []
	#agent = ''
	#status = ''
	#runs: Run[] | undefined
	#next: string | null = null
	readonly #showSoon = throttle(SHOW_MS, () => this.requestUpdate())
	/** For new runs, and for fields that events do not contain. Not once older runs are shown, which would be lost. */
	readonly #readSoon = throttle(READ_MS, () => (this.#runs?.length ?? 0) <= PAGE && this.attempt(() => this.#read()))

	async enter(): Promise<void> {
		this.#agents = await agentNames(this.signal)
		const { signal } = this
		await listen({ query: { event_type: 'run.*' }, signal, onEvent: (event) => this.#onEvent(event) })
		await this.#read()
	}

	async #read(more = false): Promise<void> {
		const { signal } = this
		const query = new URLSearchParams({ limit: String(PAGE), ...(this.#status && { status: this.#status }) })
		const last = more ? this.#next : null
		if (this.#agent) {
			if (last !== null) query.set('before', last)
			const runs = await get<Run[]>(`${path`/v1/agents/${this.#agent}/runs`}?${query}`, signal)
			this.#runs = more ? [...(this.#runs ?? []), ...runs] : runs
			this.#next = runs.at(-1)?.run_id ?? null
			return
		}
		if (last !== null) query.set('cursor', last)
		const page = await get<{ runs: Run[]; next_cursor: string | null }>(`/v1/runs?${query}`, signal)
		this.#runs = more ? [...(this.#runs ?? []), ...page.runs] : page.runs
		this.#next = page.next_cursor
	}

	#onEvent({ event_type, run_id, timestamp }: GatewayEvent): void {
		const now = statusAfter[event_type]
		const run = this.#runs?.find((listed) => listed.run_id === run_id)
		if (run && now) {
			run.status = now
			if (now === 'completed' || now === 'failed' || now === 'stopped') run.ended_at = timestamp
			this.#showSoon()
		}
		this.#readSoon()
	}

	#filter(agent: string, status: string): void {
		this.#agent = agent
		this.#status = status
		void this.attempt(() => this.#read())
	}

	protected content(): TemplateResult {
		return html`
			<h1>Runs</h1>
			<div class="row">
				${choice('Agent', this.#agents, this.#agent, (name) => this.#filter(name, this.#status), 'all')}
				${choice('Status', statuses, this.#status, (status) => this.#filter(this.#agent, status), 'any')}
			</div>
			${this.#list()}
		`
	}

	#list(): TemplateResult {
		if (!this.#runs) return loading
		if (this.#runs.length === 0)
			return empty('No runs match.', html`<a href="#/chat">Talk to an agent</a> to start one.`)
		return html`${table(
			['Status', 'Agent', 'Prompt', 'Started by', 'Started', 'Took', 'Tokens'],
			this.#runs.map(
				(run) =>
					html`<tr>
						<td>${status(run.status)}</td>
						<td>${run.agent}</td>
						<td class="wide"><a href="#/runs/${run.run_id}">${excerpt(run.prompt) || '(no text)'}</a></td>
						<td>${run.trigger}</td>
						<td>${when(run.created_at)}</td>
						<td>${runTime(run) ?? '–'}</td>
						<td>${tokens(run.usage)}</td>
					</tr>`,
			),
		)}
		${
			this.#next === null
				? nothing
				: html`<button @click=${() => this.attempt(() => this.#read(true))}>Show older runs</button>`
		}`
	}
}

customElements.define('svc-runs', Runs)
