import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path } from '../api.ts'
import { excerpt } from '../format.ts'
import { empty, loading, Page, status, submitted } from '../page.ts'
import { listen } from '../stream.ts'
import { jsonWithEscapes, markInvisible } from '../invisible.ts'
import { agentHead } from './agent-head.ts'

interface Tool {
	name: string
	tool: string
	description: string
	input_schema: object
	annotations: object
	digest: string
	held?: boolean
	/** The accepted definition, if the current one is held back. */
	accepted?: Definition
}

type Definition = Pick<Tool, 'description' | 'input_schema' | 'annotations'>

interface Server {
	id: string
	name: string
	status: string
	status_detail: string
	last_error: { at: string; message: string } | null
	/** Absent for a stdio server. */
	login?: { issuer: string; scopes: string[] } | null
	tools: Tool[]
}

/** The MCP servers of one agent, and their tools. */
class McpPage extends Page {
	static override properties = { agent: { attribute: false } }
	declare agent: string
	#servers: Server[] | undefined
	/** Login URLs by server id. */
	#logins = new Map<string, string>()

	async enter(): Promise<void> {
		const query = { event_type: 'mcp.*', agent_id: this.agent }
		await listen({ query, signal: this.signal, onEvent: () => void this.attempt(() => this.read()) })
		await this.read()
	}

	protected override async read(): Promise<void> {
		const { signal } = this
		const list = await get<{ id: string }[]>(path`/v1/agents/${this.agent}/mcp`, signal)
		this.#servers = await Promise.all(
			list.map(({ id }) => get<Server>(path`/v1/agents/${this.agent}/mcp/${id}`, signal)),
		)
	}

	protected content(): TemplateResult {
		return html`
			${agentHead(this.agent, 'mcp')} ${this.#list()}
			<form class="card narrow" @submit=${this.#add}>
				<h2>Add a server</h2>
				<label>Name <input name="name" required autocomplete="off" pattern="[A-Za-z0-9_\\-]{1,64}" /></label>
				<label
					>Command, or address
					<input
						name="target"
						required
						autocomplete="off"
						placeholder="npx -y @modelcontextprotocol/server-filesystem /srv, or https://…"
				/></label>
				<p class="note">Secrets, headers and further options: <code>svc mcp add --help</code></p>
				<button class="primary">Add</button>
			</form>
		`
	}

	#list(): TemplateResult {
		if (!this.#servers) return loading
		if (this.#servers.length === 0) return empty('No MCP server yet.')
		return html`${this.#servers.map((server) => {
			const held = server.tools.filter((tool) => tool.held)
			return html`<article class="card">
				<h2>${server.name} ${status(server.status)}</h2>
				<p class="note">${server.status_detail}</p>
				${server.last_error === null || server.status === 'connected' ? nothing : html`<p class="problem">${server.last_error.message}</p>`}
				${this.#login(server)}
				${
					held.length === 0
						? nothing
						: html`<p class="warning">
									These tools have changed since they were first seen, and are held back:
									${held.map(({ name }) => name).join(', ')}
								</p>
								${held.map(changeOf)}
								<p><button @click=${() => this.#accept(server.id, held)}>Accept these changes</button></p>`
				}
				<details>
					<summary>${server.tools.length} tools</summary>
					<ul>
						${server.tools.map((tool) => html`<li><code>${tool.tool}</code> ${markInvisible(excerpt(tool.description, 200))}</li>`)}
					</ul>
				</details>
				<div class="row">
					<button @click=${() => this.#do(server, 'restart')}>Restart</button>
					${this.deleteButton('Remove', `Remove the MCP server ${server.name}?`, path`/v1/agents/${this.agent}/mcp/${server.id}`)}
				</div>
			</article>`
		})}`
	}

	#login(server: Server): TemplateResult | typeof nothing {
		const { id, status: now, login } = server
		const url = this.#logins.get(id)
		if (login && now !== 'needs_login')
			return html`<p>
				Signed in at
				${login.issuer}${login.scopes.length > 0 ? html`, for <code>${login.scopes.join(' ')}</code>` : nothing}.
				<button @click=${() => this.#do(server, 'logout')}>Sign out</button>
			</p>`
		if (now !== 'needs_login') return nothing
		if (url === undefined) return html`<p><button class="primary" @click=${() => this.#signIn(id)}>Sign in</button></p>`
		return html`<p>
			<a class="button primary" href=${url} target="_blank" rel="noreferrer">Continue at ${new URL(url).host}</a>
		</p>`
	}

	#signIn(id: string): void {
		void this.attempt(async () => {
			const { url } = await change<{ url: string }>('POST', path`/v1/agents/${this.agent}/mcp/${id}/login`)
			// The URL comes from another server, and must not be a javascript: URL.
			if (/^https?:/i.test(url)) this.#logins.set(id, url)
		})
	}

	/** Accepts only the definitions that are shown, by digest: the server may change them again at any time. */
	#accept(id: string, held: readonly Tool[]): void {
		void this.attempt(async () => {
			try {
				const body = { digests: held.map(({ digest }) => digest) }
				await change('POST', path`/v1/agents/${this.agent}/mcp/${id}/accept`, body)
			} finally {
				await this.read()
			}
		})
	}

	#add(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		const target = text('target').trim()
		const isAddress = /^https?:/i.test(target)
		const [command, ...args] = target.split(/\s+/)
		const server = isAddress ? { transport: 'http', url: target } : { transport: 'stdio', command, args }
		this.apply('POST', path`/v1/agents/${this.agent}/mcp`, { name: text('name').trim(), ...server }, form)
	}

	#do({ id }: Server, what: 'restart' | 'logout'): void {
		void this.attempt(async () => {
			await change('POST', path`/v1/agents/${this.agent}/mcp/${id}/${what}`)
			this.#logins.delete(id)
			await this.read()
		})
	}
}

function changeOf(tool: Tool): TemplateResult {
	const { name, accepted } = tool
	return html`<details open>
		<summary><code>${name}</code></summary>
		<p>Before</p>
		<pre>${accepted ? definitionOf(accepted) : ''}</pre>
		<p>Now</p>
		<pre>${definitionOf(tool)}</pre>
	</details>`
}

function definitionOf({ description, input_schema, annotations }: Definition): string {
	return jsonWithEscapes({ description, input_schema, annotations })
}

customElements.define('svc-mcp', McpPage)
