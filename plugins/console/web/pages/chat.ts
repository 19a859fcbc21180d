import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path, send } from '../api.ts'
import { when } from '../format.ts'
import { markdown } from '../markdown.ts'
import { empty, Page } from '../page.ts'
import { framesOf } from '../stream.ts'
import type { AgentItem, GatewayEvent, Message, Run } from '../types.ts'
import './inbox.ts'

interface Conversation {
	conversation: string
	is_session: boolean
	newest_run: Run
}

/** A message that is being written. */
interface Exchange {
	prompt: string
	files: string[]
	answer: string
	run_id: string | undefined
	/** Tools that were called. */
	tools: string[]
}

interface Blob {
	type: string
	blob: string
}

/** Conversations with agents. The API's current session, or one that the API has named. */
class Chat extends Page {
	static override properties = { agent: { attribute: false }, conversation: { attribute: false } }
	declare agent: string
	declare conversation: string
	#agents: string[] | undefined
	#conversations: Conversation[] = []
	#messages: Message[] = []
	#writing: Exchange | null = null
	#waiting: Run | null = null
	#files: File[] = []

	async enter(): Promise<void> {
		this.#messages = []
		this.#waiting = null
		this.#agents ??= (await get<AgentItem[]>('/v1/agents', this.left.signal)).map(({ name }) => name)
		const [first] = this.#agents
		if (this.agent === '' && first !== undefined) location.replace(`#/chat/${encodeURIComponent(first)}`)
		else await this.#read()
	}

	async #read(): Promise<void> {
		if (this.agent === '') return
		const { signal } = this.left
		const at = this.conversation === '' ? '' : `?conversation=${encodeURIComponent(this.conversation)}`
		const [messages, { conversations }] = await Promise.all([
			get<Message[]>(path`/v1/agents/${this.agent}/history` + at, signal),
			get<{ conversations: Conversation[] }>(path`/v1/agents/${this.agent}/conversations`, signal),
		])
		this.#messages = messages
		this.#conversations = conversations
		const current = conversations.find((one) =>
			this.conversation === '' ? one.is_session : one.conversation === this.conversation,
		)
		this.#waiting = current?.newest_run.open_question ? current.newest_run : null
	}

	protected override updated(): void {
		this.querySelector('.chat-end')?.scrollIntoView({ block: 'nearest' })
	}

	/** Others, such as those of a chat or webhook, can be read only. */
	get #isOwn(): boolean {
		return this.conversation === '' || this.conversation.startsWith('api:') || this.#current?.is_session === true
	}

	get #current(): Conversation | undefined {
		return this.#conversations.find((one) => one.conversation === this.conversation)
	}

	protected content(): TemplateResult {
		if (this.#agents?.length === 0)
			return html`<h1>Chat</h1>
				${empty('There is no agent yet.', html`<a href="#/agents">Create one</a>`)}`
		return html`
			<h1>Chat</h1>
			<div class="row">
				<label
					>Agent
					<select @change=${(event: Event) => this.#go((event.target as HTMLSelectElement).value)}>
						${this.#agents?.map((name) => html`<option ?selected=${name === this.agent}>${name}</option>`)}
					</select>
				</label>
				<label
					>Conversation
					<select @change=${(event: Event) => this.#go(this.agent, (event.target as HTMLSelectElement).value)}>
						<option value="" ?selected=${this.conversation === ''}>current session</option>
						${this.#conversations
							.filter((one) => !one.is_session)
							.map(
								({ conversation: id }) =>
									html`<option value=${id} ?selected=${id === this.conversation}>${id}</option>`,
							)}
					</select>
				</label>
				<button @click=${() => this.#go(this.agent, `api:${crypto.randomUUID().slice(0, 8)}`)}>New conversation</button>
			</div>
			<div class="chat" aria-live="polite">
				${this.#messages.length === 0 && !this.#writing ? empty('Nothing was said here yet.') : nothing}
				${this.#messages.map(
					({ role, content, timestamp }) =>
						html`<div class="said ${role}">
							<span class="note">${role} · ${when(timestamp)}</span>${markdown(content)}
						</div>`,
				)}
				${this.#writing ? this.#exchange(this.#writing) : nothing}
				${
					this.#waiting
						? html`<svc-question .run=${this.#waiting} @answered=${() => this.#answered()}></svc-question>`
						: nothing
				}
				<div class="chat-end"></div>
			</div>
			${this.#isOwn ? this.#form() : html`<p class="note">This conversation is held elsewhere and can only be read here.</p>`}
		`
	}

	#exchange({ prompt, files, answer, tools }: Exchange): TemplateResult {
		return html`<div class="said user">
				<span class="note">user</span>${markdown(prompt)}${files.map((name) => html`<p class="note">📎 ${name}</p>`)}
			</div>
			<div class="said assistant">
				<span class="note">${this.agent} is writing${tools.length > 0 ? `, called ${tools.join(', ')}` : ''} …</span>
				${markdown(answer)}
			</div>`
	}

	#form(): TemplateResult {
		const isBusy = this.#writing !== null
		return html`<form class="composer" @submit=${this.#submit}>
			<textarea
				name="prompt"
				rows="3"
				aria-label="Message"
				placeholder="Message (Enter sends, Shift-Enter begins a new line)"
				@keydown=${this.#key}
			></textarea>
			<div class="row">
				<label class="button"
					>Attach
					<input type="file" multiple hidden @change=${this.#attach} />
				</label>
				${this.#files.map(({ name }) => html`<span class="note">📎 ${name}</span>`)}
				<span class="grow"></span>
				${
					isBusy
						? html`<button type="button" class="danger" @click=${() => this.#stop()}>Stop</button>`
						: html`<button class="primary">Send</button>`
				}
			</div>
		</form>`
	}

	#go(agent: string, conversation = ''): void {
		location.hash = `/chat/${encodeURIComponent(agent)}${conversation === '' ? '' : `/${encodeURIComponent(conversation)}`}`
	}

	#key(event: KeyboardEvent): void {
		if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
		event.preventDefault()
		;(event.target as HTMLTextAreaElement).form?.requestSubmit()
	}

	#attach(event: Event): void {
		const input = event.target as HTMLInputElement
		this.#files = [...this.#files, ...(input.files ?? [])]
		input.value = ''
		this.requestUpdate()
	}

	#submit(event: SubmitEvent): void {
		event.preventDefault()
		const field = (event.target as HTMLFormElement).elements.namedItem('prompt') as HTMLTextAreaElement
		const prompt = field.value.trim()
		if (this.#writing || (prompt === '' && this.#files.length === 0)) return
		const files = this.#files
		void this.attempt(async () => {
			await this.#say(prompt, files)
			await this.#read()
		}).then((isSent) => {
			this.#writing = null
			if (!isSent && field.value === '') field.value = prompt
			this.requestUpdate()
		})
		field.value = ''
		this.#files = []
	}

	async #say(prompt: string, files: File[]): Promise<void> {
		const exchange: Exchange = {
			prompt,
			files: files.map(({ name }) => name),
			answer: '',
			run_id: undefined,
			tools: [],
		}
		this.#writing = exchange
		this.requestUpdate()
		const attachments = await Promise.all(files.map((file) => this.#upload(file)))
		const name = this.conversation.startsWith('api:') ? this.conversation.slice('api:'.length) : undefined
		const response = await send(path`/v1/agents/${this.agent}/runs`, {
			method: 'POST',
			signal: this.left.signal,
			headers: {
				'content-type': 'application/json',
				accept: 'text/event-stream',
				'idempotency-key': crypto.randomUUID(),
			},
			body: JSON.stringify({
				...(prompt !== '' && { prompt }),
				...(attachments.length > 0 && { attachments }),
				...(name !== undefined && { conversation: name }),
			}),
		})
		exchange.run_id = response.headers.get('x-svc-run-id') ?? undefined
		for await (const { data } of framesOf(response)) {
			const { event_type, payload } = JSON.parse(data) as GatewayEvent
			if (event_type === 'model.stream') exchange.answer += String(payload.content ?? '')
			if (event_type === 'message.assistant') exchange.answer = String(payload.content ?? '')
			if (event_type.endsWith('.called'))
				exchange.tools.push(String(payload.primitive ?? payload.tool ?? payload.skill ?? ''))
			if (event_type === 'run.failed') throw new Error(String(payload.message ?? 'the run failed'))
			// It waits for an answer, which may take days.
			if (event_type === 'run.paused') return
			this.requestUpdate()
		}
	}

	async #upload(file: File): Promise<{ blob: string; name: string }> {
		const response = await send(`${path`/v1/agents/${this.agent}/blobs`}?name=${encodeURIComponent(file.name)}`, {
			method: 'POST',
			headers: { 'content-type': 'application/octet-stream' },
			body: file,
		})
		const { blob } = (await response.json()) as Blob
		return { blob, name: file.name }
	}

	/** The run continues: its answer is read when it is there. */
	#answered(): void {
		const run = this.#waiting
		this.#waiting = null
		void this.attempt(async () => {
			if (!run) return
			const url = `/v1/events/stream?run_id=${encodeURIComponent(run.run_id)}&last_event_id=0`
			const response = await send(url, { signal: this.left.signal, headers: { accept: 'text/event-stream' } })
			let answers = 0
			for await (const { data } of framesOf(response)) {
				const { event_type } = JSON.parse(data) as GatewayEvent
				if (event_type === 'question.answered') answers++
				const isOver = /^run\.(completed|failed|stopped)$/.test(event_type)
				if (isOver || (event_type === 'run.paused' && answers > 0)) break
			}
			await this.#read()
		})
	}

	#stop(): void {
		const id = this.#writing?.run_id
		if (id !== undefined) void this.attempt(() => change('POST', path`/v1/runs/${id}/cancel`, {}))
	}
}

customElements.define('svc-chat', Chat)
