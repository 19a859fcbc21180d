import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get, path } from '../api.ts'
import { when } from '../format.ts'
import { empty, Page, submitted, table } from '../page.ts'
import { agentHead } from './agent-head.ts'

interface Memory {
	id: string
	content: string
	tags?: string[]
	created_at: string
	/** In search results: the cosine similarity, from 0 to 1. */
	similarity?: number
}

interface Compaction {
	compaction_id: string
	status: string
	started_at: string
	memories_before: number
	memories_after: number | null
}

/** The long-term memory of one agent. */
class MemoryPage extends Page {
	static override properties = { agent: { attribute: false } }
	declare agent: string
	#memories: Memory[] | undefined
	#next: string | null = null
	#found: Memory[] | undefined
	#compactions: Compaction[] = []

	async enter(): Promise<void> {
		await this.#read(null)
		this.#compactions = await get<Compaction[]>(path`/v1/agents/${this.agent}/memory/compactions`, this.signal)
	}

	async #read(cursor: string | null): Promise<void> {
		const query = new URLSearchParams({ limit: '50', ...(cursor !== null && { cursor }) })
		const page = await get<{ memories: Memory[]; next_cursor: string | null }>(
			`${path`/v1/agents/${this.agent}/memory`}?${query}`,
			this.signal,
		)
		this.#memories = cursor === null ? page.memories : [...(this.#memories ?? []), ...page.memories]
		this.#next = page.next_cursor
	}

	protected content(): TemplateResult {
		return html`
			${agentHead(this.agent, 'memory')}
			<form class="row" @submit=${this.#search}>
				<input name="q" aria-label="Search" placeholder="Search the memory" autocomplete="off" />
				<button>Search</button>
			</form>
			${this.#list()}
			<form class="card narrow" @submit=${this.#store}>
				<h2>New memory</h2>
				<label>Content <textarea name="content" rows="3" required></textarea></label>
				<button class="primary">Store</button>
			</form>
			<h2>Compaction</h2>
			<p class="note">Merges memories with the same content. The originals are archived, and you can undo it.</p>
			<button @click=${() => this.apply('POST', path`/v1/agents/${this.agent}/memory/compact`)}>Compact now</button>
			${this.#compactions.length === 0 ? nothing : this.#history()}
		`
	}

	#list(): TemplateResult {
		const list = this.#found ?? this.#memories
		if (list?.length === 0)
			return empty(this.#found ? 'Nothing was found.' : 'The agent has no memories yet. Store one below.')
		return html`${table(
			[['', 'wide'], '', ''],
			list?.map((memory) => [
				html`<span class="lines">${memory.content}</span>
					${memory.tags?.map((tag) => html`<span class="chip">${tag}</span>`)}`,
				memory.similarity === undefined ? when(memory.created_at) : `similarity ${memory.similarity.toFixed(2)}`,
				this.#forgetButton(memory),
			]),
		)}
		${
			this.#found
				? html`<button @click=${() => this.#showAll()}>Show all memories</button>`
				: this.#next === null
					? nothing
					: html`<button @click=${() => this.attempt(() => this.#read(this.#next))}>Show older memories</button>`
		}`
	}

	#history(): TemplateResult {
		return table(
			['Started', 'Status', 'Before', 'After', ''],
			this.#compactions.map(({ compaction_id, started_at, status, memories_before, memories_after }) => {
				const undo = path`/v1/agents/${this.agent}/memory/compactions/${compaction_id}/undo`
				return [
					when(started_at),
					status,
					memories_before,
					memories_after ?? '–',
					status === 'completed' ? html`<button @click=${() => this.apply('POST', undo)}>Undo</button>` : nothing,
				]
			}),
		)
	}

	#search(event: SubmitEvent): void {
		const q = submitted(event).text('q').trim()
		if (q === '') return this.#showAll()
		void this.attempt(async () => {
			const query = new URLSearchParams({ q, limit: '20' })
			this.#found = await get<Memory[]>(`${path`/v1/agents/${this.agent}/memory/search`}?${query}`, this.signal)
		})
	}

	#showAll(): void {
		this.#found = undefined
		this.requestUpdate()
	}

	#store(event: SubmitEvent): void {
		const { form, text } = submitted(event)
		this.apply('POST', path`/v1/agents/${this.agent}/memory`, { content: text('content') }, form)
	}

	#forgetButton({ id, content }: Memory): TemplateResult {
		const question = 'Forget this memory? This cannot be undone.'
		return this.deleteButton('Forget', question, path`/v1/agents/${this.agent}/memory/${id}`, {
			name: `Forget: ${content.slice(0, 60)}`,
			done: () => {
				this.#found = this.#found?.filter((memory) => memory.id !== id)
				return this.#read(null)
			},
		})
	}
}

customElements.define('svc-memory', MemoryPage)
