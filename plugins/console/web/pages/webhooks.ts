import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, loading, Page, submitted, table } from '../page.ts'
import { agentHead } from './agent-head.ts'

interface Webhook {
	slug: string
	scheme: string
	instructions: string | null
	delivery_count: number
}

interface Delivery {
	source_ip: string
	run_id: string | null
	status_code: number
	error: string | null
	received_at: string
}

interface CreatedWebhook {
	slug: string
	url: string
	secret: string
}

/** The webhooks of one agent, with their latest deliveries. */
class Webhooks extends Page {
	static override properties = { agent: { attribute: false } }
	declare agent: string
	#webhooks: Webhook[] | undefined
	#deliveries = new Map<string, Delivery[]>()
	#created: CreatedWebhook | undefined

	async enter(): Promise<void> {
		const { signal } = this
		this.#webhooks = await get<Webhook[]>(path`/v1/agents/${this.agent}/webhooks`, signal)
		for (const { slug } of this.#webhooks)
			this.#deliveries.set(
				slug,
				await get<Delivery[]>(path`/v1/agents/${this.agent}/webhooks/${slug}/deliveries` + '?limit=20', signal),
			)
	}

	protected content(): TemplateResult {
		return html`
			${agentHead(this.agent, 'webhooks')} ${this.#created ? this.#secret(this.#created) : nothing} ${this.#list()}
			<form class="card narrow" @submit=${this.#add}>
				<h2>New webhook</h2>
				<label>Name <input name="slug" required autocomplete="off" placeholder="deploys" /></label>
				<label
					>Instructions
					<textarea name="instructions" rows="2" placeholder="What the agent should do with a delivery"></textarea>
				</label>
				<button class="primary">Create</button>
			</form>
		`
	}

	/** The secret is shown only here: the API returns it only once. */
	#secret({ slug, url, secret }: CreatedWebhook): TemplateResult {
		const signed = `BODY='{"event":"test"}'
SIGNATURE=$(printf %s "$BODY" | openssl dgst -sha256 -hmac '${secret}' -hex | sed 's/.*= //')
curl '${url}' -H 'content-type: application/json' -H "x-signature: sha256=$SIGNATURE" -d "$BODY"`
		return html`<article class="card">
			<h2>${slug} is ready</h2>
			<p>Address: <code>${url}</code></p>
			<p>Secret, shown only now: <code>${secret}</code></p>
			<details>
				<summary>How to sign a delivery</summary>
				<pre>${signed}</pre>
			</details>
		</article>`
	}

	#list(): TemplateResult {
		if (!this.#webhooks) return loading
		if (this.#webhooks.length === 0) return empty('No webhook yet: create one for each service that should start runs.')
		return html`${this.#webhooks.map(
			({ slug, scheme, instructions, delivery_count }) =>
				html`<article class="card">
					<h2>${slug}</h2>
					<p class="note">Signature scheme: ${scheme} · ${delivery_count} deliveries</p>
					${instructions ? html`<p class="lines">${instructions}</p>` : nothing}
					${this.#delivered(this.#deliveries.get(slug) ?? [])}
					<div class="row">
						<button @click=${() => this.#test(slug)}>Deliver a test</button>
						${this.#deleteButton(slug)}
					</div>
				</article>`,
		)}`
	}

	#delivered(list: Delivery[]): unknown {
		if (list.length === 0) return nothing
		return table(
			['Received', 'From', 'Status', ['', 'wide']],
			list.map(({ received_at, source_ip, status_code, run_id, error }) => [
				when(received_at),
				source_ip,
				html`<span class=${status_code < 300 ? 'good' : 'warning'}>${status_code}</span>`,
				run_id === null ? error : html`<a href="#/runs/${run_id}">run</a>`,
			]),
		)
	}

	#add(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		const instructions = text('instructions').trim()
		void this.attempt(async () => {
			this.#created = await change<CreatedWebhook>('POST', path`/v1/agents/${this.agent}/webhooks`, {
				slug: text('slug').trim(),
				...(instructions !== '' && { instructions }),
			})
			form.reset()
			await this.enter()
		})
	}

	#test(slug: string): void {
		this.apply('POST', path`/v1/agents/${this.agent}/webhooks/${slug}/test`, { payload: { event: 'test' } })
	}

	#deleteButton(slug: string): TemplateResult {
		const question = `Delete the webhook ${slug}? Its address stops working.`
		const done = () => {
			this.#created = undefined
			return this.enter()
		}
		return this.deleteButton('Delete', question, path`/v1/agents/${this.agent}/webhooks/${slug}`, { done })
	}
}

customElements.define('svc-webhooks', Webhooks)
