import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { agentNames, get, path } from '../api.ts'
import { when } from '../format.ts'
import { agentField, empty, loading, Page, status, submitted, table } from '../page.ts'

interface Binding {
	binding_id: string
	agent_id: string
	external_chat_id: string
	created_at: string
}

export interface Channel {
	id: string
	type: string
	status: string
	connection: string
	bot: string | null
	last_error: string | null
	bindings: Binding[]
}

const names: Record<string, string> = { chat_a: 'Telegram', chat_b: 'Discord' }

/** Chat platforms, and the chats that are bound to agents. */
class Channels extends Page {
	#channels: Channel[] | undefined
	#agents: string[] = []

	async enter(): Promise<void> {
		const { signal } = this
		const { channels } = await get<{ channels: { id: string }[] }>('/v1/channels', signal)
		this.#channels = await Promise.all(channels.map(({ id }) => get<Channel>(path`/v1/channels/${id}`, signal)))
		this.#agents = await agentNames(signal)
	}

	protected content(): TemplateResult {
		return html`
			<h1>Channels</h1>
			${this.#list()}
			<form class="card narrow" @submit=${this.#pair}>
				<h2>Pair a chat</h2>
				<p class="note">Send <code>/start</code> to the bot; it answers with a code.</p>
				<label>Code <input name="code" required autocomplete="off" /></label>
				${agentField(this.#agents)}
				<button class="primary">Pair</button>
			</form>
		`
	}

	#list(): TemplateResult {
		if (!this.#channels) return loading
		if (this.#channels.length === 0)
			return empty(
				'No chat platform is connected. Connect one:',
				html`<code>svc channels add telegram --agent NAME</code>`,
			)
		return html`${this.#channels.map(
			(channel) =>
				html`<article class="card">
					<h2>${names[channel.type] ?? channel.type} ${channel.bot ?? ''} ${status(channel.connection)}</h2>
					${channel.last_error === null ? nothing : html`<p class="problem">${channel.last_error}</p>`}
					${table(
						[['', 'name'], ['', 'wide'], '', ''],
						channel.bindings.map((binding) => this.#row(channel, binding)),
						empty('No chat is paired yet.'),
					)}
				</article>`,
		)}`
	}

	#pair(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		this.apply('POST', '/v1/channels/pair', { pairing_code: text('code').trim(), agent_id: text('agent') }, form)
	}

	#row({ id }: Channel, { binding_id, agent_id, external_chat_id, created_at }: Binding): unknown[] {
		const at = path`/v1/channels/${id}/bindings/${binding_id}`
		return [
			html`chat <code>${external_chat_id}</code>`,
			html`<a href="#/agents/${agent_id}">${agent_id}</a>`,
			when(created_at),
			this.deleteButton('Unpair', `Unpair the chat ${external_chat_id}?`, at),
		]
	}
}

customElements.define('svc-channels', Channels)
