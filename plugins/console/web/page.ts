/** What every page has. */
import { html, LitElement, nothing } from 'lit'
import type { PropertyValues, TemplateResult } from 'lit'
import { ApiError, change } from './api.ts'

/** Its content is in the document itself, whose one style sheet applies to it. */
export abstract class PlainElement extends LitElement {
	protected override createRenderRoot(): HTMLElement {
		return this
	}
}

export abstract class Page extends PlainElement {
	/** Aborts when the page is left. */
	protected left = new AbortController()
	protected problem: unknown = null

	override connectedCallback(): void {
		super.connectedCallback()
		this.#begin()
	}

	/** Another id in the address is another page. */
	protected override willUpdate(changed: PropertyValues): void {
		if (this.hasUpdated && [...changed.values()].some((before) => typeof before === 'string')) this.#begin()
	}

	#begin(): void {
		this.left.abort()
		this.left = new AbortController()
		void this.attempt(() => this.enter())
	}

	override disconnectedCallback(): void {
		this.left.abort()
		super.disconnectedCallback()
	}

	/** Reads what the page shows. Called again where a token was given, or the gateway has come back. */
	abstract enter(): Promise<void>

	/** Shows what went wrong, and what the page shows otherwise. */
	protected override render(): TemplateResult {
		const content = this.content()
		const problem = this.problem === null ? nothing : problemOf(this.problem)
		// One template with and without a problem, so that a form keeps what was typed.
		return html`${problem}${problem !== nothing && content === loading ? nothing : content}`
	}

	protected abstract content(): TemplateResult

	/** Does something that may fail; the failure shows until the next attempt. False where it failed. */
	protected async attempt(work: () => Promise<unknown>): Promise<boolean> {
		const { left } = this
		try {
			await work()
			this.problem = null
			return true
		} catch (error) {
			if (left.signal.aborted) return false
			this.problem = error
			return false
		} finally {
			this.requestUpdate()
		}
	}

	/** Sends a change, empties the form that asked for it, and reads the page again. */
	protected apply(method: string, path: string, body?: unknown, form?: HTMLFormElement): void {
		void this.attempt(async () => {
			await change(method, path, body)
			form?.reset()
			await this.enter()
		})
	}
}

function problemOf(error: unknown): TemplateResult {
	const { message, errors } = error instanceof ApiError ? error : { message: String(error), errors: [] }
	const lines = message.split('\n')
	return html`<div class="problem" role="alert">
		${lines.map((line) => html`<p>${line}</p>`)}
		${
			lines.length === 1 && errors.length > 1
				? html`<ul>
						${errors.map(({ path, message: what }) => html`<li><code>${path}</code> ${what}</li>`)}
					</ul>`
				: nothing
		}
	</div>`
}

/** Text for a page that has nothing to show yet, with what to do next. */
export function empty(what: string, next?: unknown): TemplateResult {
	return html`<p class="empty">${what}${next === undefined ? nothing : html` ${next}`}</p>`
}

export function status(of: string): TemplateResult {
	return html`<span class="status ${of}">${of}</span>`
}

export const loading = html`<p class="empty">Loading …</p>`

/** A table that can be scrolled sideways. Without `heads` it has no head. */
export function table(heads: readonly string[], rows: readonly TemplateResult[], kind?: string): TemplateResult {
	const head = html`<thead>
		<tr>
			${heads.map((text) => html`<th>${text}</th>`)}
		</tr>
	</thead>`
	return html`<div class="scroll">
		<table class=${kind ?? nothing}>
			${heads.length > 0 ? head : nothing}
			<tbody>
				${rows}
			</tbody>
		</table>
	</div>`
}

/** A list to choose from, which shows `current`. `any`: the label of the choice of none, which is the empty text. */
export function choice(
	label: string,
	names: readonly string[],
	current: string,
	choose: (name: string) => void,
	any?: string,
): TemplateResult {
	return html`<label
		>${label}
		<select @change=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
			${any === undefined ? nothing : html`<option value="">${any}</option>`}
			${names.map((name) => html`<option ?selected=${name === current}>${name}</option>`)}
		</select>
	</label>`
}

export function agentField(names: readonly string[]): TemplateResult {
	return html`<label
		>Agent
		<select name="agent">
			${names.map((name) => html`<option>${name}</option>`)}
		</select></label
	>`
}

/** The form that was submitted, and its fields by name. */
export function submitted(event: SubmitEvent): { form: HTMLFormElement; text: (name: string) => string } {
	event.preventDefault()
	const form = event.target as HTMLFormElement
	const data = new FormData(form)
	return { form, text: (name) => String(data.get(name) ?? '') }
}

/** Returns what calls `work` after `ms`, once for all calls until then: events may come by the hundred. */
export function soon(ms: number, work: () => unknown): () => void {
	let timer: number | undefined
	return () => {
		timer ??= setTimeout(() => {
			timer = undefined
			work()
		}, ms)
	}
}
