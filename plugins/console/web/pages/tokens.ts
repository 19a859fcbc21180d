import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, Page, status, submitted, table } from '../page.ts'

interface Token {
	id: string
	label?: string
	scopes: string[]
	agents?: string[]
	limits?: Record<string, number>
	status: string
	expires_at: string | null
	created_at: string
}

const DAY_MS = 86_400_000

/** The limits in the form, with their labels. */
const LIMITS = {
	runs_per_day: 'Runs per day (empty: no limit)',
	tokens_per_day: 'Model tokens per day (empty: no limit)',
	cost_per_day: 'Cost per day (empty: no limit)',
}

/** API tokens with their scopes, agents and limits. */
class Tokens extends Page {
	#tokens: Token[] | undefined
	/** The text of the token that was just created: the API shows it only once. */
	#created: string | undefined

	async enter(): Promise<void> {
		this.#tokens = (await get<{ tokens: Token[] }>('/v1/auth/tokens', this.signal)).tokens
	}

	protected content(): TemplateResult {
		return html`
			<h1>Tokens</h1>
			${
				this.#created === undefined
					? nothing
					: html`<article class="card">
							<p>The new token, shown only now: <code>${this.#created}</code></p>
						</article>`
			}
			${table(
				['Name', 'Status', ['Scopes', 'wide'], 'Agents', 'Limits', 'Expires', 'Created', ''],
				this.#tokens?.map((token) => this.#row(token)),
				empty('No token yet.'),
			)}
			<form class="card narrow" @submit=${this.#create}>
				<h2>New token</h2>
				<label>Name <input name="label" autocomplete="off" placeholder="the ticket system" /></label>
				<label
					>Scopes <input name="scopes" required autocomplete="off" value="agents:read runs:write events:read"
				/></label>
				<label>Agents (empty: all) <input name="agents" autocomplete="off" placeholder="ada team-*" /></label>
				${Object.entries(LIMITS).map(
					([name, title]) =>
						html`<label
							>${title}
							<input
								name=${name}
								type="number"
								min=${name === 'cost_per_day' ? '0' : '1'}
								step=${name === 'cost_per_day' ? 'any' : '1'}
						/></label>`,
				)}
				<label>Days until it expires (empty: never) <input name="days" type="number" min="1" max="3650" /></label>
				<button class="primary">Create</button>
			</form>
		`
	}

	#row({ id, label, scopes, agents, limits, status: now, expires_at, created_at }: Token): unknown[] {
		const question = `Revoke the token ${label ?? id}? Clients that use it are refused at once.`
		return [
			label ?? html`<code>${id.slice(-8)}</code>`,
			status(now),
			scopes.join(' '),
			agents?.join(' ') ?? 'all',
			limitsText(limits),
			expires_at === null ? 'never' : when(expires_at),
			when(created_at),
			now === 'active' ? this.deleteButton('Revoke', question, path`/v1/auth/tokens/${id}`) : nothing,
		]
	}

	#create(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		const words = (name: string): string[] =>
			text(name)
				.split(/[\s,]+/)
				.filter((word) => word !== '')
		const agents = words('agents')
		const days = Number(text('days'))
		const label = text('label').trim()
		const limits = Object.keys(LIMITS).flatMap((name) => (text(name) === '' ? [] : [[name, Number(text(name))]]))
		void this.attempt(async () => {
			const created = await change<{ token: string }>('POST', '/v1/auth/tokens', {
				scopes: words('scopes'),
				...(agents.length > 0 && { agents }),
				...(limits.length > 0 && { limits: Object.fromEntries(limits) as Record<string, number> }),
				...(label !== '' && { label }),
				...(days > 0 && { ttl: new Date(Date.now() + days * DAY_MS).toISOString() }),
			})
			this.#created = created.token
			form.reset()
			await this.enter()
		})
	}
}

function limitsText(limits: Record<string, number> = {}): string {
	const texts = Object.entries(limits).map(([name, limit]) => `${name.replaceAll('_', ' ')}: ${limit}`)
	return texts.join(', ') || 'none'
}

customElements.define('svc-tokens', Tokens)
