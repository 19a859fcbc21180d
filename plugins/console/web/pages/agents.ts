import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, getIfThere, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, loading, Page, status, submitted, table } from '../page.ts'
import type { Agent, AgentItem, Skill } from '../types.ts'
import { agentHead } from './agent-head.ts'
import './memory.ts'
import './mcp.ts'
import './schedule.ts'
import './skill.ts'
import './webhooks.ts'

interface Changed {
	warnings?: { path: string; message: string }[]
}

const SHOWN = 50

/** The list of agents, or one agent with persona, configuration and skills. */
class Agents extends Page {
	static override properties = { name: { attribute: false } }
	declare name: string
	#list: AgentItem[] | undefined
	/** Part of a name. */
	#search = ''
	#agent: Agent | undefined
	/** Undefined if the plugin is switched off. */
	#skills: Skill[] | undefined
	#saved: Changed | undefined

	async enter(): Promise<void> {
		const { signal } = this
		const { name } = this
		this.#agent = undefined
		this.#saved = undefined
		if (name === '') {
			this.#list = await get<AgentItem[]>('/v1/agents', signal)
			return
		}
		const [agent, skills] = await Promise.all([
			get<Agent>(path`/v1/agents/${name}`, signal),
			getIfThere<Skill[]>(path`/v1/agents/${name}/skills`, signal),
		])
		this.#agent = agent
		this.#skills = skills
	}

	protected content(): TemplateResult {
		if (this.name !== '') return this.#agent ? this.#one(this.#agent) : loading
		return html`
			<h1>Agents</h1>
			${this.#list?.length === 0 ? empty('There is no agent yet. Create the first one below.') : nothing}
			${this.#list && this.#list.length > 0 ? this.#table(this.#list) : nothing}
			<form class="card narrow" @submit=${this.#create}>
				<h2>New agent</h2>
				<label
					>Name <input name="name" required pattern="[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}" autocomplete="off"
				/></label>
				<label
					>Persona <textarea name="persona" rows="3" placeholder="Who it is, and how it should behave"></textarea>
				</label>
				<button class="primary">Create</button>
			</form>
		`
	}

	#table(all: AgentItem[]): TemplateResult {
		const part = this.#search.toLowerCase()
		const found = all.filter(({ name }) => name.toLowerCase().includes(part))
		return html`
			${
				all.length > SHOWN
					? html`<div class="row">
							<input
								type="search"
								aria-label="Part of a name"
								placeholder="Part of a name"
								@input=${(event: InputEvent) => this.#setSearch((event.target as HTMLInputElement).value)}
							/>
							<span class="note" role="status">
								${found.length > SHOWN ? `the first ${SHOWN} of ${found.length} agents` : `${found.length} of ${all.length} agents`}
							</span>
						</div>`
					: nothing
			}
			${table(
				[['Name', 'wide'], 'Created', ''],
				found
					.slice(0, SHOWN)
					.map(({ name, created_at }) => [
						html`<a href="#/agents/${name}">${name}</a>`,
						when(created_at),
						html`<a href="#/chat/${name}">Chat</a>`,
					]),
			)}
		`
	}

	#setSearch(part: string): void {
		this.#search = part
		this.requestUpdate()
	}

	#one(agent: Agent): TemplateResult {
		const { name } = agent
		const sure = `Delete ${name} with its conversations, memories, skills and settings? This cannot be undone.`
		const done = () => (location.hash = '/agents')
		return html`
			${agentHead(name, '')}
			<form class="card" @submit=${this.#save}>
				<label>Persona <textarea name="persona" rows="5" .value=${agent.persona ?? ''}></textarea></label>
				<label
					>Configuration
					<textarea
						name="config"
						rows="10"
						class="code"
						spellcheck="false"
						.value=${JSON.stringify(agent.config, null, 2)}
					></textarea>
				</label>
				<p class="note">
					JSON: model, provider, limits, tools, context and others, as in PATCH /v1/agents of the
					<a href="/docs">API</a>.
				</p>
				${this.#saved ? html`<p class="good" role="status">Saved.</p>` : nothing}
				${this.#saved?.warnings?.map((one) => html`<p class="warning"><code>${one.path}</code> ${one.message}</p>`)}
				<div class="row">
					<button class="primary">Save</button>
					<span class="grow"></span>
					${this.deleteButton('Delete agent', sure, path`/v1/agents/${name}`, { done })}
				</div>
			</form>
			${this.#skills ? this.#skillList(name, this.#skills) : nothing}
		`
	}

	#skillList(agent: string, skills: Skill[]): TemplateResult {
		return html`<h2>Skills</h2>
			${table(
				['', '', ['', 'wide']],
				skills.map(({ id, name, description, status: now }) => [
					status(now),
					html`<a href="#/agents/${agent}/skills/${id}">${name}</a>`,
					description,
				]),
				empty('No skill yet. Install one:', html`<code>svc skills install ${agent} FOLDER</code>`),
			)}`
	}

	#create(event: SubmitEvent): void {
		const { text } = submitted(event)
		const [name, persona] = [text('name'), text('persona')]
		void this.attempt(async () => {
			await change('POST', '/v1/agents', { name, ...(persona && { persona }) })
			location.hash = `/agents/${encodeURIComponent(name)}`
		})
	}

	#save(event: SubmitEvent): void {
		const { text } = submitted(event)
		const agent = this.#agent
		if (!agent) return
		void this.attempt(async () => {
			const config = parseConfig(text('config'))
			// In a PATCH, null removes a key.
			const removed = Object.keys(agent.config).filter((key) => !Object.hasOwn(config, key))
			const body = {
				persona: text('persona') || null,
				config: { ...config, ...Object.fromEntries(removed.map((key) => [key, null])) },
			}
			const saved = await change<Changed>('PATCH', path`/v1/agents/${agent.name}`, body)
			await this.enter()
			this.#saved = saved
		})
	}
}

function parseConfig(text: string): Record<string, unknown> {
	try {
		const value = JSON.parse(text) as unknown
		if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
	} catch (error) {
		throw new Error(`The configuration is not JSON: ${(error as Error).message}`, { cause: error })
	}
	throw new Error('The configuration must be a JSON object, such as {"limits": {"steps": 20}}')
}

customElements.define('svc-agents', Agents)
