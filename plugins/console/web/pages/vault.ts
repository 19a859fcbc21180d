import { html } from 'lit'
import type { TemplateResult } from 'lit'
import { agentNames, get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, Page, submitted, table } from '../page.ts'

interface Secret {
	id: string
	name: string
	created_at: string
}

interface Grant {
	grant_id: string
	agent_id: string
	secret_id: string
	reveal: boolean
	hosts?: string[]
}

/** The names of secrets, and the agents that may use them. */
class Vault extends Page {
	#secrets: Secret[] | undefined
	#grants: Grant[] = []
	#agents: string[] = []

	async enter(): Promise<void> {
		const { signal } = this
		const [secrets, grants, agents] = await Promise.all([
			get<Secret[]>('/v1/vault/secrets', signal),
			get<Grant[]>('/v1/vault/grants', signal),
			agentNames(signal),
		])
		this.#secrets = secrets
		this.#grants = grants
		this.#agents = agents
	}

	protected content(): TemplateResult {
		if (!this.#secrets) return html`<h1>Vault</h1>`
		return html`
			<h1>Vault</h1>
			${table(
				[['Secret', 'name'], 'Stored', ['Agents that may use it', 'wide'], ''],
				this.#secrets.map((secret) => this.#row(secret)),
				empty('No secret is stored yet.'),
			)}
			<form class="card narrow" @submit=${this.#store}>
				<h2>New secret</h2>
				<label
					>Name <input name="name" required autocomplete="off" spellcheck="false" placeholder="GITHUB_TOKEN"
				/></label>
				<label>Value <input name="value" type="password" required autocomplete="off" /></label>
				<button class="primary">Store</button>
			</form>
		`
	}

	#row(secret: Secret): unknown[] {
		const { id, name, created_at } = secret
		const question = `Delete the secret ${name}? Agents and settings that use it will fail.`
		return [
			name,
			when(created_at),
			this.#granted(secret),
			this.deleteButton('Delete', question, path`/v1/vault/secrets/${id}`),
		]
	}

	#granted(secret: Secret): TemplateResult {
		const granted = this.#grants.filter((grant) => grant.secret_id === secret.id)
		const others = this.#agents.filter((name) => !granted.some((grant) => grant.agent_id === name))
		return html`${granted.map(
				(grant) =>
					html`<span class="chip"
						>${grant.agent_id}${grant.hosts ? ` (${grant.hosts.join(', ')})` : ''}${grant.reveal ? ' (reads the value)' : ''}
						<button
							aria-label="Revoke ${secret.name} from ${grant.agent_id}"
							@click=${() => this.apply('DELETE', path`/v1/vault/grants/${grant.grant_id}`)}
						>
							×
						</button></span
					>`,
			)}
			<select aria-label="Grant ${secret.name} to" @change=${(event: Event) => this.#grant(secret, event)}>
				<option value="">grant to …</option>
				${others.map((name) => html`<option>${name}</option>`)}
			</select>`
	}

	#store(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		this.apply('POST', '/v1/vault/secrets', { name: text('name'), value: text('value') }, form)
	}

	#grant({ id }: Secret, event: Event): void {
		const field = event.target as HTMLSelectElement
		const agent_id = field.value
		field.value = ''
		if (agent_id === '') return
		this.apply('POST', '/v1/vault/grants', { agent_id, secret_id: id })
	}
}

customElements.define('svc-vault', Vault)
