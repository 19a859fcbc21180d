import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { keyed } from 'lit/directives/keyed.js'
import { repeat } from 'lit/directives/repeat.js'
import { agentNames, change, get, getIfThere, path } from '../api.ts'
import { excerpt, when } from '../format.ts'
import { agentField, empty, loading, Page, throttle, submitted } from '../page.ts'
import { listen } from '../stream.ts'
import type { GatewayEvent, Question, Run, Skill } from '../types.ts'
import { jsonWithEscapes } from '../invisible.ts'

/** Maximum number of agents whose skills and MCP servers are shown. */
const AGENTS_LIMIT = 200
/** Agents that are read at the same time. */
const CONCURRENCY = 6

interface McpServer {
	id: string
	name: string
	status: string
	/** Changed tools that are held back. */
	held_tools?: number
}

interface WaitingChat {
	channel_id: string
	external_chat_id: string
	asked_by: string | null
	expires_at: string
}

/** No event reports a chat that waits to be paired, since anyone could fill the log with such events. So the page polls. */
const POLL_MS = 10_000
const READ_MS = 250
/** Without the events of calls of skills and tools, which are frequent. */
const CHANGES = [
	'question.*,run.paused,run.resumed,run.stopped,agent.created,agent.deleted',
	'skill.installed,skill.approved,skill.removed,security.violation',
	'mcp.added,mcp.removed,mcp.accepted,mcp.connected,mcp.disconnected,mcp.login_required,mcp.logged_in,mcp.logged_out',
].join()

/**
 * Everything that waits for a person: questions, approvals of calls, skills in quarantine, MCP servers that need a login or have
 * changed, and chats that wait to be paired.
 */
class Inbox extends Page {
	#runs: Run[] = []
	/** Skills and servers that wait for a person, by agent. */
	readonly #waiting = new Map<string, { skills: Skill[]; servers: McpServer[] }>()
	#chats: WaitingChat[] = []
	#agents: string[] = []
	/** Agents that have changed since they were read. */
	readonly #changed = new Set<string>()
	#reading = Promise.resolve()
	#isLoaded = false
	/** Whether all agents have been read. */
	#isComplete = false
	readonly #readSoon = throttle(READ_MS, () => this.attempt(() => this.#readChanged()))

	async enter(): Promise<void> {
		const { signal } = this
		const timer = setInterval(() => void this.attempt(() => this.#poll()), POLL_MS)
		signal.addEventListener('abort', () => clearInterval(timer))
		await listen({ query: { event_type: CHANGES }, signal, onEvent: (event) => this.#onEvent(event) })
		this.#agents = await agentNames(signal)
		await this.#readRuns()
		await this.read()
		this.#isLoaded = true
		// Shows what has been read, since reading all agents takes a while on a slow connection.
		this.requestUpdate()
		for (const name of this.#agents.slice(0, AGENTS_LIMIT)) this.#changed.add(name)
		await this.#readAgents()
	}

	#onEvent({ event_type, agent_id }: GatewayEvent): void {
		if (agent_id !== null && !/^(question|run)\./.test(event_type)) this.#changed.add(agent_id)
		if (agent_id !== null && event_type === 'agent.created') this.#agents = [...new Set([...this.#agents, agent_id])]
		this.#readSoon()
	}

	async #readChanged(): Promise<void> {
		await this.#readRuns()
		await this.#readAgents()
	}

	/** Also retries agents that could not be read. */
	async #poll(): Promise<void> {
		await this.read()
		if (this.#isLoaded && this.#changed.size > 0) await this.#readAgents()
	}

	async #readRuns(): Promise<void> {
		const { runs } = await get<{ runs: Run[] }>('/v1/runs?status=paused&limit=200', this.signal)
		// A run that waits for a sub-agent has the sub-agent's question, which is listed with the sub-agent.
		this.#runs = runs.filter((run) => run.open_question?.run_id === run.run_id)
	}

	/** One call after another, so that an older response never replaces a newer one. */
	#readAgents(): Promise<void> {
		this.#reading = this.#reading.catch(() => {}).then(() => this.#readAllChanged())
		return this.#reading
	}

	async #readAllChanged(): Promise<void> {
		const names = [...this.#changed]
		const readers = await Promise.allSettled(
			Array.from({ length: CONCURRENCY }, async () => {
				for (let name = names.pop(); name !== undefined; name = names.pop()) await this.#readAgent(name)
			}),
		)
		for (const reader of readers) if (reader.status === 'rejected') throw reader.reason
		this.#isComplete = true
	}

	async #readAgent(name: string): Promise<void> {
		const { signal } = this
		this.#changed.delete(name)
		try {
			const skills = (await getIfThere<Skill[]>(path`/v1/agents/${name}/skills`, signal)) ?? []
			const servers = (await getIfThere<McpServer[]>(path`/v1/agents/${name}/mcp`, signal)) ?? []
			this.#waiting.set(name, {
				skills: skills.filter(({ status }) => status === 'quarantined'),
				servers: servers.filter((server) => server.status === 'needs_login' || server.held_tools),
			})
		} catch (error) {
			this.#changed.add(name)
			throw error
		}
	}

	/** Reads the chats that wait to be paired. */
	protected override async read(): Promise<void> {
		const waiting = await getIfThere<{ chats: WaitingChat[] }>('/v1/channels/waiting', this.signal)
		this.#chats = waiting?.chats ?? []
	}

	#pair(event: SubmitEvent, { channel_id, external_chat_id, asked_by }: WaitingChat): void {
		this.apply('POST', '/v1/channels/pair', {
			channel_id,
			external_chat_id,
			agent_id: submitted(event).text('agent'),
			...(asked_by !== null && { paired_by: asked_by }),
		})
	}

	#chatCard(chat: WaitingChat): TemplateResult {
		const { external_chat_id, asked_by, expires_at } = chat
		return html`<form class="card" @submit=${(event: SubmitEvent) => this.#pair(event, chat)}>
			<h2>Chat ${external_chat_id} wants to be paired</h2>
			<p>
				${asked_by === null ? 'Somebody' : html`User <code>${asked_by}</code>`} asked the bot for a code, which is valid
				until ${when(expires_at)}. Anyone can write to a bot: make sure that you know who it is.
			</p>
			<div class="row">
				${agentField(this.#agents)}
				<button class="primary">Pair</button>
			</div>
		</form>`
	}

	protected content(): TemplateResult {
		if (!this.#isLoaded) return loading
		const waiting = [...this.#waiting]
		const skills = waiting
			.flatMap(([agent, { skills }]) => skills.map((skill) => ({ agent, skill })))
			.toSorted((a, b) => (a.skill.installed_at < b.skill.installed_at ? -1 : 1))
		const servers = waiting
			.flatMap(([agent, { servers }]) => servers.map((server) => ({ agent, server })))
			.toSorted((a, b) => (a.server.id < b.server.id ? -1 : 1))
		const nothingWaits = this.#runs.length + skills.length + servers.length + this.#chats.length === 0
		return html`
			<h1>Inbox</h1>
			${
				this.#agents.length > AGENTS_LIMIT
					? html`<p class="note">
							New skills and MCP servers are shown for the first ${AGENTS_LIMIT} of ${this.#agents.length} agents.
							<code>svc skills list</code> and <code>svc mcp list</code> show those of all agents.
						</p>`
					: nothing
			}
			${this.#isComplete ? nothing : loading}
			${nothingWaits && this.#isComplete ? empty('Nothing needs your attention. Questions of agents, calls to approve, new skills, servers that need a login, changed tools and chats that wait to be paired appear here.') : nothing}
			${repeat(this.#runs, questionOf, (run) => questionCard(run, this.#readSoon))}
			${this.#chats.map((chat) => this.#chatCard(chat))}
			${servers.map(({ agent, server }) => serverCard(agent, server))}
			${skills.map(({ agent, skill }) =>
				card(
					`New skill: ${skill.name}`,
					html`For <a href="#/agents/${agent}">${agent}</a>, installed ${when(skill.installed_at)}.
						${excerpt(skill.description)}`,
					`#/agents/${agent}/skills/${skill.id}`,
				),
			)}
		`
	}
}

function serverCard(agent: string, { name, status, held_tools = 0 }: McpServer): TemplateResult {
	const of = html`The MCP server of <a href="#/agents/${agent}">${agent}</a>`
	const at = `#/agents/${agent}/mcp`
	if (status === 'needs_login') return card(`Sign in to ${name}`, html`${of} needs a login.`, at, 'Sign in')
	const text = html`${of} has changed ${held_tools === 1 ? 'a tool' : `${held_tools} tools`}. The agent cannot use them
	until you accept the changes.`
	return card(`Changed tools of ${name}`, text, at)
}

function card(title: string, text: TemplateResult, href: string, action = 'Review'): TemplateResult {
	return html`<article class="card">
		<h2>${title}</h2>
		<p>${text}</p>
		<a class="button primary" href=${href}>${action}</a>
	</article>`
}

/** The question of a run. Each question has its own element, so that text typed for one never answers another. */
export function questionCard(run: Run, answered: () => unknown): unknown {
	return keyed(questionOf(run), html`<svc-question .run=${run} @answered=${answered}></svc-question>`)
}

function questionOf({ open_question }: Run): string | undefined {
	return open_question?.question_id
}

/** The question of a run, with a form to answer it. */
class QuestionCard extends Page {
	static override properties = { run: { attribute: false } }
	declare run: Run
	#edited: string | null = null

	async enter(): Promise<void> {}

	protected content(): TemplateResult {
		const { run } = this
		const question = run.open_question
		if (!question) return html``
		return html`<article class="card">
			<h2>${question.kind === 'approval' ? html`Approve <code>${question.tool}</code>?` : 'Question'}</h2>
			<p class="note">
				<a href="#/agents/${run.agent}">${run.agent}</a> · <a href="#/runs/${run.run_id}">run</a> of
				${when(run.created_at)} · ${excerpt(run.prompt, 80)}
			</p>
			${question.kind === 'approval' ? this.#approval(question) : this.#question(question)}
		</article>`
	}

	#question({ question, options }: Question): TemplateResult {
		return html`<p class="lines">${question}</p>
			<div class="row">
				${options?.map((option) => html`<button @click=${() => this.#answer({ answer: option })}>${option}</button>`)}
			</div>
			<form class="row" @submit=${this.#submit}>
				<input name="answer" aria-label="Your answer" placeholder="Your answer" required autocomplete="off" />
				<button class="primary">Answer</button>
			</form>`
	}

	#approval({ arguments: args }: Question): TemplateResult {
		const edited = this.#edited
		const text = jsonWithEscapes(args ?? {})
		return html`${
				edited === null
					? html`<pre>${text}</pre>`
					: html`<textarea
							aria-label="Arguments"
							rows=${Math.min(20, edited.split('\n').length + 1)}
							.value=${edited}
							@input=${(event: InputEvent) => (this.#edited = (event.target as HTMLTextAreaElement).value)}
						></textarea>`
			}
			<div class="row">
				${
					edited === null
						? html`<button class="primary" @click=${() => this.#answer({ answer: 'approve' })}>Approve</button>
								<button @click=${() => this.#answer({ answer: 'approve_always' })}>Always, with these arguments</button>
								<button @click=${() => this.#edit(text)}>Edit</button>
								<button class="danger" @click=${() => this.#answer({ answer: 'refuse' })}>Refuse</button>`
						: html`<button class="primary" @click=${() => this.#approveEdited()}>Approve as edited</button>
								<button @click=${() => this.#edit(null)}>Cancel</button>`
				}
			</div>`
	}

	#edit(text: string | null): void {
		this.#edited = text
		this.requestUpdate()
	}

	#submit(event: SubmitEvent): void {
		this.#answer({ answer: submitted(event).text('answer') })
	}

	#approveEdited(): void {
		const text = this.#edited ?? ''
		void this.attempt(async () => {
			let args: unknown
			try {
				args = JSON.parse(text)
			} catch (error) {
				throw new Error(`The arguments are not JSON: ${(error as Error).message}`, { cause: error })
			}
			await this.#send({ answer: 'edit', arguments: args })
		})
	}

	#answer(body: object): void {
		void this.attempt(() => this.#send(body))
	}

	async #send(body: object): Promise<void> {
		const question = this.run.open_question
		if (!question) return
		await change('POST', path`/v1/agents/${this.run.agent}/ask-responses/${question.question_id}`, body)
		this.#edited = null
		this.dispatchEvent(new Event('answered', { bubbles: true }))
	}
}

customElements.define('svc-question', QuestionCard)
customElements.define('svc-inbox', Inbox)
