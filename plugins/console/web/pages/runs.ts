import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { agentNames, change, get, path } from '../api.ts'
import { excerpt, runTime, tokens, when } from '../format.ts'
import { choice, empty, Page, throttle, status, table } from '../page.ts'
import { listen } from '../stream.ts'
import type { GatewayEvent, Run, RunStatus } from '../types.ts'
import { isRetryable } from './run.ts'

const PAGE = 50
const OLDER_PAGE = 200
/** Maximum number of empty pages that are read in one go. */
const PAGES_LIMIT = 20
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

/** The runs of all agents, newest first, live. `query`: the filters `agent` and `status`, as in the address. */
class Runs extends Page {
	static override properties = { query: { attribute: false } }
	declare query: string
	#agents: string[] = []
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
		const { agent, status } = this.#filter
		const query = new URLSearchParams({ limit: String(more ? OLDER_PAGE : PAGE), ...(status && { status }) })
		const last = more ? this.#next : null
		if (agent) {
			if (last !== null) query.set('before', last)
			const runs = await get<Run[]>(`${path`/v1/agents/${agent}/runs`}?${query}`, signal)
			this.#runs = more ? [...(this.#runs ?? []), ...runs] : runs
			this.#next = runs.at(-1)?.run_id ?? null
			return
		}
		const found: Run[] = []
		let cursor = last
		// A page can be empty, since the gateway examines a limited number of runs for each.
		for (let pages = 0; pages === 0 || (found.length === 0 && cursor !== null && pages < PAGES_LIMIT); pages++) {
			if (cursor !== null) query.set('cursor', cursor)
			const page = await get<{ runs: Run[]; next_cursor: string | null }>(`/v1/runs?${query}`, signal)
			found.push(...page.runs)
			cursor = page.next_cursor
		}
		this.#runs = more ? [...(this.#runs ?? []), ...found] : found
		this.#next = cursor
	}

	get #filter(): { agent: string; status: string } {
		const query = new URLSearchParams(this.query)
		return { agent: query.get('agent') ?? '', status: query.get('status') ?? '' }
	}

	#choose(chosen: { agent?: string; status?: string }): void {
		const filters = Object.entries({ ...this.#filter, ...chosen }).filter(([, value]) => value !== '')
		location.hash = `/runs?${new URLSearchParams(filters)}`
	}

	#onEvent({ event_type, run_id, timestamp, payload }: GatewayEvent): void {
		const now = statusAfter[event_type]
		const run = this.#runs?.find((listed) => listed.run_id === run_id)
		if (run && now) {
			run.status = now
			if (now === 'completed' || now === 'failed' || now === 'stopped') run.ended_at = timestamp
			if (now === 'failed') run.error = { code: String(payload.code), message: String(payload.error) }
			this.#showSoon()
		}
		// Other runs do not appear in the list.
		const { status } = this.#filter
		if (run || status === '' || status === now) this.#readSoon()
	}

	#retry(runs: readonly Run[]): void {
		if (!confirm(`Start these ${runs.length} runs again, each from its prompt?`)) return
		const { signal } = this
		this.attemptBusy('retrying', async () => {
			// The oldest first, as in their conversations.
			let refused: unknown
			for (const { run_id } of runs.toReversed())
				await change('POST', path`/v1/runs/${run_id}/retry`).catch((error: unknown) => (refused ??= error))
			if (refused !== undefined) throw refused
			if (!signal.aborted) this.#choose({ status: '' })
		})
	}

	protected content(): TemplateResult {
		const { agent: ofAgent, status: withStatus } = this.#filter
		const retryable = withStatus === 'failed' || withStatus === 'stopped' ? (this.#runs ?? []).filter(isRetryable) : []
		return html`
			<h1>Runs</h1>
			<div class="row">
				${choice('Agent', this.#agents, ofAgent, (agent) => this.#choose({ agent }), 'all')}
				${choice('Status', statuses, withStatus, (status) => this.#choose({ status }), 'any')}
				${
					retryable.length === 0
						? nothing
						: html`<button ?disabled=${this.busy !== ''} @click=${() => this.#retry(retryable)}>
								${this.busy !== '' ? 'Starting …' : `Retry these ${retryable.length}`}
							</button>`
				}
			</div>
			${this.#list()}
		`
	}

	#list(): TemplateResult {
		const none = empty('No runs match.', html`<a href="#/chat">Talk to an agent</a> to start one.`)
		return html`${table(
			['Status', ['Agent', 'name'], ['Prompt', 'wide'], 'Started by', 'Started', 'Took', 'Tokens'],
			this.#runs?.map((run) => [
				status(run.status),
				run.agent,
				html`<a href="#/runs/${run.run_id}">${excerpt(run.prompt) || '(no text)'}</a>
					${run.error ? html`<div class="note">${excerpt(run.error.message)}</div>` : nothing}`,
				run.trigger,
				when(run.created_at),
				runTime(run) ?? '–',
				tokens(run.usage),
			]),
			this.#next === null ? none : undefined,
		)}
		${
			this.#next === null
				? nothing
				: html`<button @click=${() => this.attempt(() => this.#read(true))}>Show older runs</button>`
		}`
	}
}

customElements.define('svc-runs', Runs)
