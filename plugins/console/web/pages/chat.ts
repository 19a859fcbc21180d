import { html, nothing } from 'lit'
import type { LitElement, PropertyValues, TemplateResult } from 'lit'
import { keyed } from 'lit/directives/keyed.js'
import { live } from 'lit/directives/live.js'
import { agentNames, change, get, path, send } from '../api.ts'
import { when } from '../format.ts'
import { markdown } from '../markdown.ts'
import { choice, empty, Page } from '../page.ts'
import { follow } from '../stream.ts'
import type { GatewayEvent, Message, Run } from '../types.ts'
import '../context.ts'
import '../file.ts'
import { questionCard } from './inbox.ts'

interface Conversation {
	conversation: string
	is_session: boolean
	newest_run: Run
}

/** A prompt and its answer, which is being written. */
interface Exchange {
	prompt: string
	files: string[]
	answer: string
	run_id: string | undefined
	/** Tools that were called. */
	tools: string[]
	hasFailed?: boolean
}

const touch = matchMedia('(pointer: coarse)')

interface Draft {
	text: string
	files: readonly File[]
}

/** Unsent messages by chat. Outside the page, whose element is replaced after a sign-in, and once the gateway is back. */
const drafts = new Map<string, Draft>()
const DRAFTS_LIMIT = 20
const noDraft: Draft = { text: '', files: [] }
/** A reader this close to the end gets new text scrolled into view. */
const NEAR_PX = 40

/** Conversations with an agent: its current session, or a named one. */
class Chat extends Page {
	static override properties = { agent: { attribute: false }, conversation: { attribute: false } }
	declare agent: string
	declare conversation: string
	#agents: string[] | undefined
	#conversations: Conversation[] = []
	#messages: Message[] = []
	#writing: Exchange | null = null
	#waiting: Run | null = null
	#showsContext = false
	#entered = Promise.resolve()
	/** Whether the end was visible before the latest change. */
	#isAtEnd = true

	enter(): Promise<void> {
		this.#entered = this.#open()
		return this.#entered
	}

	async #open(): Promise<void> {
		this.#messages = []
		this.#waiting = null
		this.#writing = null
		this.#agents ??= await agentNames(this.signal)
		const [first] = this.#agents
		if (this.agent === '' && first !== undefined) location.replace(`#/chat/${encodeURIComponent(first)}`)
		else await this.#read()
	}

	async #read(): Promise<void> {
		if (this.agent === '') return
		const { signal } = this
		const at = this.conversation === '' ? '' : `?conversation=${encodeURIComponent(this.conversation)}`
		const [messages, { conversations }] = await Promise.all([
			get<Message[]>(path`/v1/agents/${this.agent}/history` + at, signal),
			get<{ conversations: Conversation[] }>(path`/v1/agents/${this.agent}/conversations`, signal),
		])
		this.#messages = messages
		this.#conversations = conversations
		const newest = this.#current?.newest_run
		this.#waiting = newest?.open_question ? newest : null
		if (newest && !this.#waiting && newest.ended_at === null && !this.#writing) this.#watch(newest)
	}

	/** Shows a run that started before the page was opened, or continues after its question was answered. */
	#watch({ run_id, prompt }: Run): void {
		const last = this.#messages.findLast(({ role }) => role === 'user')
		const exchange = exchangeOf(last?.content === prompt ? '' : prompt)
		void this.#show(exchange, () => this.#follow(exchange, run_id))
	}

	/** Shows an exchange while it is written, then its stored messages. False if it failed, or could not start. */
	async #show(exchange: Exchange, work: () => Promise<void>): Promise<boolean> {
		const { signal } = this
		this.#writing = exchange
		const isDone = (await this.attempt(work)) && !exchange.hasFailed
		if (signal.aborted) return isDone || exchange.run_id !== undefined
		// If the work failed, its error is shown, not an error of reading.
		if (this.problem === null) await this.attempt(() => this.#read())
		else await this.#read().catch(() => {})
		if (this.#writing === exchange) this.#writing = null
		this.requestUpdate()
		return isDone
	}

	protected override willUpdate(changed: PropertyValues): void {
		super.willUpdate(changed)
		const end = this.querySelector('.chat-end')?.getBoundingClientRect().top ?? 0
		this.#isAtEnd = changed.size > 0 || end < innerHeight + NEAR_PX
	}

	/** Scrolls to the end, unless the reader has scrolled up. */
	protected override updated(): void {
		if (!this.#isAtEnd) return
		this.#toEnd()
		// Elements inside, such as a question, get their size by updates of their own, which end before the reader can scroll.
		const inside = [...this.querySelectorAll<LitElement>('svc-question, svc-file')]
		void Promise.all(inside.map((element) => element.updateComplete)).then(() => this.#toEnd())
	}

	#toEnd(): void {
		this.querySelector('.chat-end')?.scrollIntoView({ block: 'nearest' })
	}

	/** False for conversations of channels, webhooks and others, which are read-only here. */
	get #isWritable(): boolean {
		return this.conversation === '' || this.conversation.startsWith('api:') || this.#current?.is_session === true
	}

	get #current(): Conversation | undefined {
		return this.#conversations.find(({ conversation, is_session }) =>
			this.conversation === '' ? is_session : conversation === this.conversation,
		)
	}

	protected content(): TemplateResult {
		if (this.#agents?.length === 0)
			return html`<h1>Chat</h1>
				${empty('There is no agent yet.', html`<a href="#/agents">Create one</a>`)}`
		const others = this.#conversations.flatMap(({ conversation, is_session }) => (is_session ? [] : conversation))
		return html`
			<h1>Chat</h1>
			<div class="row">
				${choice('Agent', this.#agents ?? [], this.agent, (name) => this.#go(name))}
				${choice('Conversation', others, this.conversation, (id) => this.#go(this.agent, id), 'current session')}
				<button @click=${() => this.#go(this.agent, `api:${crypto.randomUUID().slice(0, 8)}`)}>New conversation</button>
			</div>
			<div class="chat" aria-live="polite">
				${this.#messages.length === 0 && !this.#writing ? empty('There are no messages yet.') : nothing}
				${this.#messages.map(
					({ role, content, timestamp, attachments = [] }) =>
						html`<div class="said ${role}">
							<span class="note">${role} · ${when(timestamp)}</span>${markdown(content)}
							${attachments.map((file) => keyed(file.blob, html`<svc-file .agent=${this.agent} .file=${file}></svc-file>`))}
						</div>`,
				)}
				${this.#writing ? this.#exchange(this.#writing) : this.#failure()}
				${this.#waiting ? questionCard(this.#waiting, () => this.#answered()) : nothing}
				<div class="chat-end"></div>
			</div>
			${this.#context()}
			${this.#isWritable ? this.#form() : html`<p class="note">This conversation takes place elsewhere and is read-only here.</p>`}
		`
	}

	#failure(): unknown {
		const { run_id, error } = this.#current?.newest_run ?? { error: null }
		if (!error) return nothing
		return html`<p class="problem" role="alert">${error.message} <a href="#/runs/${run_id}">Run</a></p>`
	}

	/** While it is open, the context is read again after each turn. */
	#context(): unknown {
		const id = this.#current?.conversation
		if (id === undefined || this.#writing) return nothing
		return html`<details class="context" ?open=${this.#showsContext} @toggle=${(event: Event) => this.#toggle(event)}>
			<summary>Context</summary>
			${this.#showsContext ? html`<svc-context .agent=${this.agent} .conversation=${id}></svc-context>` : nothing}
		</details>`
	}

	#toggle(event: Event): void {
		this.#showsContext = (event.target as HTMLDetailsElement).open
		this.requestUpdate()
	}

	#exchange({ prompt, files, answer, tools }: Exchange): TemplateResult {
		return html`${
				prompt === '' && files.length === 0
					? nothing
					: html`<div class="said user">
							<span class="note">user</span
							>${markdown(prompt)}${files.map((name) => html`<p class="note">📎 ${name}</p>`)}
						</div>`
			}
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
				placeholder=${touch.matches ? 'Message' : 'Message (Enter sends, Shift-Enter begins a new line)'}
				.value=${live(this.#draft.text)}
				@input=${(event: InputEvent) => this.#edit({ text: (event.target as HTMLTextAreaElement).value })}
				@keydown=${this.#key}
			></textarea>
			<div class="row">
				<label class="button"
					>Attach
					<input type="file" multiple class="unseen" @change=${this.#attach} />
				</label>
				${this.#draft.files.map(({ name }) => html`<span class="note">📎 ${name}</span>`)}
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

	get #draftKey(): string {
		return `${this.agent}/${this.conversation}`
	}

	get #draft(): Draft {
		return drafts.get(this.#draftKey) ?? noDraft
	}

	#edit(change: Partial<Draft>): void {
		storeDraft(this.#draftKey, { ...this.#draft, ...change })
	}

	#key(event: KeyboardEvent): void {
		// On-screen keyboards have no Shift-Enter, so Enter begins a new line there.
		if (event.key !== 'Enter' || event.shiftKey || event.isComposing || touch.matches) return
		event.preventDefault()
		;(event.target as HTMLTextAreaElement).form?.requestSubmit()
	}

	#attach(event: Event): void {
		const input = event.target as HTMLInputElement
		this.#edit({ files: [...this.#draft.files, ...(input.files ?? [])] })
		input.value = ''
		this.requestUpdate()
	}

	#submit(event: SubmitEvent): void {
		event.preventDefault()
		const key = this.#draftKey
		const { text, files } = this.#draft
		const prompt = text.trim()
		if (this.#writing || (prompt === '' && files.length === 0)) return
		const exchange = exchangeOf(
			prompt,
			files.map(({ name }) => name),
		)
		const entered = this.#entered.catch(() => {})
		const send = async (): Promise<void> => {
			await entered // otherwise the history that is being read might contain the message, too
			await this.#follow(exchange, await this.#start(prompt, files))
		}
		void this.#show(exchange, send).then((isSent) => {
			if (isSent || drafts.has(key)) return
			storeDraft(key, { text: prompt, files })
			this.requestUpdate()
		})
		storeDraft(key, noDraft)
		this.#toEnd()
		this.requestUpdate()
	}

	async #start(prompt: string, files: readonly File[]): Promise<string> {
		const { agent, conversation } = this // another chat may be opened during the uploads
		const attachments = await Promise.all(files.map((file) => upload(agent, file)))
		const name = conversation.startsWith('api:') ? conversation.slice('api:'.length) : undefined
		const { run_id } = await change<{ run_id: string }>('POST', path`/v1/agents/${agent}/runs`, {
			...(prompt !== '' && { prompt }),
			...(attachments.length > 0 && { attachments }),
			...(name !== undefined && { conversation: name }),
		})
		return run_id
	}

	/** Follows the run until it ends or waits for a person, also across restarts of the gateway. */
	async #follow(exchange: Exchange, run_id: string): Promise<void> {
		exchange.run_id = run_id
		const done = new AbortController()
		const onEvent = ({ event_type, payload }: GatewayEvent): void => {
			if (event_type === 'model.stream') exchange.answer += String(payload.content ?? '')
			if (event_type === 'message.assistant') exchange.answer = String(payload.content ?? '')
			if (event_type.endsWith('.called'))
				exchange.tools.push(String(payload.primitive ?? payload.tool ?? payload.skill ?? ''))
			if (event_type === 'run.failed') exchange.hasFailed = true
			if (/^run\.(completed|failed|stopped)$/.test(event_type)) done.abort()
			// The stream begins with past events: the question of this pause may have been answered.
			if (event_type === 'run.paused') void isWaiting(run_id).then((waits) => waits && done.abort())
			this.requestUpdate()
		}
		await follow({
			query: { run_id, last_event_id: '0' },
			signal: AbortSignal.any([this.signal, done.signal]),
			onEvent,
		})
	}

	#answered(): void {
		const run = this.#waiting
		this.#waiting = null
		if (run) this.#watch(run)
	}

	#stop(): void {
		const id = this.#writing?.run_id
		if (id !== undefined) void this.attempt(() => change('POST', path`/v1/runs/${id}/cancel`, {}))
	}
}

function exchangeOf(prompt: string, files: string[] = []): Exchange {
	return { prompt, files, answer: '', run_id: undefined, tools: [] }
}

async function upload(agent: string, file: File): Promise<{ blob: string; name: string }> {
	const response = await send(`${path`/v1/agents/${agent}/blobs`}?name=${encodeURIComponent(file.name)}`, {
		method: 'POST',
		headers: { 'content-type': 'application/octet-stream' },
		body: file,
	})
	const { blob } = (await response.json()) as { blob: string }
	return { blob, name: file.name }
}

function storeDraft(key: string, draft: Draft): void {
	drafts.delete(key)
	if (draft.text !== '' || draft.files.length > 0) drafts.set(key, draft)
	const [oldest = ''] = drafts.keys()
	if (drafts.size > DRAFTS_LIMIT) drafts.delete(oldest)
}

/** Whether a run waits for a person now. */
async function isWaiting(run_id: string): Promise<boolean> {
	return get<Run>(path`/v1/runs/${run_id}`).then(
		({ open_question }) => open_question !== null,
		() => false,
	)
}

customElements.define('svc-chat', Chat)
