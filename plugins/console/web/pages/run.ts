import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { retryableTriggers } from '../../../shared/retryable-triggers.ts'
import { change, get, hasToken, path } from '../api.ts'
import { cost, duration, excerpt, runTime, tokens, when } from '../format.ts'
import { markdown } from '../markdown.ts'
import { folded, loading, Page, throttle, status, table } from '../page.ts'
import { listen } from '../stream.ts'
import type { GatewayEvent, Run, Step } from '../types.ts'
import { questionCard } from './inbox.ts'

const READ_MS = 300
/** Maximum number of events on the page. The oldest are dropped. */
const EVENTS_LIMIT = 2_000
/** Maximum depth of the sub-agents shown: more than the default of subagents.max_depth. */
const LEVELS_LIMIT = 5
/** Maximum number of sub-agents shown for one run. */
const CHILDREN_LIMIT = 50

interface Child {
	run: Run
	children: Child[]
}

/** One run, live, with its tokens and cost. */
class RunPage extends Page {
	static override properties = { runId: { attribute: false } }
	declare runId: string
	#run: Run | undefined
	#steps: Step[] = []
	#events: GatewayEvent[] = []
	/** The answer that the model is writing. */
	#live = ''
	readonly #readSoon = throttle(READ_MS, () => this.attempt(() => this.read()))
	#children: Child[] = []

	async enter(): Promise<void> {
		this.#run = undefined
		this.#events = []
		this.#children = []
		this.#live = ''
		await this.read()
		const query = { run_id: this.runId, last_event_id: '0' }
		await listen({ query, signal: this.signal, onEvent: (event) => this.#onEvent(event) })
	}

	protected override async read(): Promise<void> {
		const { signal } = this
		const [run, { steps }] = await Promise.all([
			get<Run>(path`/v1/runs/${this.runId}`, signal),
			get<{ steps: Step[] }>(path`/v1/runs/${this.runId}/steps`, signal),
		])
		this.#run = run
		this.#steps = steps
		if (this.#events.some(({ event_type }) => event_type === 'subagent.spawned'))
			this.#children = await childrenOf(this.runId, signal)
	}

	#onEvent(event: GatewayEvent): void {
		if (event.event_type === 'model.stream') this.#live += String(event.payload.content ?? '')
		else {
			this.#events.push(event)
			if (this.#events.length > EVENTS_LIMIT) this.#events.shift()
			if (event.event_type === 'model.response' || event.event_type === 'message.assistant') this.#live = ''
		}
		this.requestUpdate()
		this.#readSoon()
	}

	protected content(): TemplateResult {
		const run = this.#run
		if (!run) return loading
		const isOver = run.ended_at !== null
		const took = runTime(run)
		const stop = () => this.apply('POST', path`/v1/runs/${run.run_id}/cancel`, {})
		return html`
			<h1>Run of <a href="#/agents/${run.agent}">${run.agent}</a> ${status(run.status)}</h1>
			<p class="note">
				<code>${run.run_id}</code> · started by ${run.trigger} · ${when(run.created_at)}
				${run.parent_run_id === null ? nothing : html`· sub-agent of <a href="#/runs/${run.parent_run_id}">this run</a>`}
				${took === undefined ? nothing : html`· took ${took}`} · ${tokens(run.usage)}
				${run.usage.cost === undefined ? nothing : html`· cost ${cost(run.usage.cost)}`}
			</p>
			<div class="row">
				${isOver ? nothing : html`<button class="danger" @click=${stop}>Stop</button>`}
				${isRetryable(run) ? html`<button class="primary" @click=${() => this.#retry()}>Retry</button>` : nothing}
				<a class="button" href="#/chat/${run.agent}/${encodeURIComponent(run.conversation)}">Conversation</a>
				<details class="curl">
					<summary>As a command</summary>
					<pre>${curlOf(run)}</pre>
				</details>
			</div>
			${run.error ? html`<p class="problem" role="alert"><b>${run.error.code}</b> ${run.error.message}</p>` : nothing}
			${run.open_question ? questionCard(run, () => this.attempt(() => this.read())) : nothing} ${this.#bars()}
			${
				this.#children.length === 0
					? nothing
					: html`<h2>Sub-agents</h2>
							${treeOf(this.#children)}`
			}
			<h2>Timeline</h2>
			<ol class="timeline">
				${this.#events.map((event) => this.#event(event))}
				${this.#live === '' ? nothing : html`<li class="message assistant live"><b>writes</b>${markdown(this.#live)}</li>`}
			</ol>
		`
	}

	/** The calls on a time line of the run. */
	#bars(): TemplateResult {
		const first = this.#steps[0]
		if (!first) return html``
		const begun = Date.parse(first.started_at)
		const endOf = (step: Step): number => (step.ended_at === null ? Date.now() : Date.parse(step.ended_at))
		const whole = Math.max(1, ...this.#steps.map((step) => endOf(step) - begun))
		return html`<h2>Calls</h2>
			${table(
				[['', 'name'], ['', 'wide'], '', ''],
				this.#steps.map((step) => {
					const from = Date.parse(step.started_at) - begun
					const width = Math.max(0.5, ((endOf(step) - begun - from) / whole) * 100)
					return [
						step.kind === 'model' ? `${step.provider}/${step.model}` : step.name,
						html`<svg
							class="bar ${step.error ? 'bad' : step.kind}"
							viewBox="0 0 100 8"
							preserveAspectRatio="none"
							aria-hidden="true"
						>
							<rect x=${(from / whole) * 100} y="1" width=${width} height="6"></rect>
						</svg>`,
						step.duration_ms === null ? '…' : duration(step.duration_ms),
						step.usage ? tokens(step.usage) : nothing,
					]
				}),
			)}`
	}

	#event({ event_type, payload, timestamp }: GatewayEvent): TemplateResult {
		const at = html`<time datetime=${timestamp}>${when(timestamp)}</time>`
		const [family, what] = event_type.split('.')
		if (family === 'message') {
			const body =
				what === 'user' || what === 'assistant' ? markdown(String(payload.content ?? '')) : folded(payload.content)
			return html`<li class="message ${what}"><b>${what}</b> ${at} ${body}</li>`
		}
		const name = payload.primitive ?? payload.tool ?? payload.skill ?? payload.model ?? ''
		const isBad = event_type.endsWith('.failed') || event_type.startsWith('security.')
		return html`<li class=${isBad ? 'bad' : ''}>
			<b>${event_type}</b> ${name === '' ? nothing : html`<code>${String(name)}</code>`} ${at} ${folded(payload)}
		</li>`
	}

	#retry(): void {
		void this.attempt(async () => {
			const { run_id } = await change<Run>('POST', path`/v1/runs/${this.runId}/retry`)
			location.hash = `/runs/${run_id}`
		})
	}
}

export function isRetryable({ status, trigger, parent_run_id }: Run): boolean {
	return (status === 'failed' || status === 'stopped') && retryableTriggers.includes(trigger) && parent_run_id === null
}

async function childrenOf(run_id: string, signal: AbortSignal, levels = LEVELS_LIMIT): Promise<Child[]> {
	if (levels === 0) return []
	const query = new URLSearchParams({ run_id, event_type: 'subagent.spawned', limit: String(CHILDREN_LIMIT) })
	const { events } = await get<{ events: GatewayEvent[] }>(`/v1/audit?${query.toString()}`, signal)
	const ids = events.map(({ payload }) => String(payload.run_id)).toReversed()
	return Promise.all(
		ids.map(async (id) => ({
			run: await get<Run>(path`/v1/runs/${id}`, signal),
			children: await childrenOf(id, signal, levels - 1),
		})),
	)
}

function treeOf(children: readonly Child[]): TemplateResult {
	return html`<ul>
		${children.map(
			({ run, children: below }) =>
				html`<li>
					<a href="#/runs/${run.run_id}">${excerpt(run.prompt, 80)}</a> ${status(run.status)} ${tokens(run.usage)}
					${below.length === 0 ? nothing : treeOf(below)}
				</li>`,
		)}
	</ul>`
}

/** A command that starts the same run again. */
function curlOf({ agent, prompt, conversation }: Run): string {
	const named = conversation.startsWith('api:') ? { conversation: conversation.slice('api:'.length) } : {}
	const body = JSON.stringify({ prompt, ...named }).replaceAll("'", String.raw`'\''`)
	const token = hasToken() ? ` \\\n  -H "authorization: Bearer $SVC_TOKEN"` : ''
	return `curl -N ${location.origin}${path`/v1/agents/${agent}/runs`}${token} \\
  -H 'content-type: application/json' -H 'accept: text/event-stream' \\
  -d '${body}'`
}

customElements.define('svc-run', RunPage)
