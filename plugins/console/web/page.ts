/** The base of all pages, and parts that they share. */
import { html, LitElement, nothing } from 'lit'
import type { PropertyValues, TemplateResult } from 'lit'
import { ApiError, change } from './api.ts'
import { json } from './format.ts'

/** An element without a shadow root, so that the document's style sheet applies to its content. */
export abstract class PlainElement extends LitElement {
	protected override createRenderRoot(): HTMLElement {
		return this
	}
}

export abstract class Page extends PlainElement {
	#left = new AbortController()
	protected problem: unknown = null
	/** The work in progress that buttons wait for; empty: none. */
	protected busy = ''

	/** Aborts when the page is left. */
	protected get signal(): AbortSignal {
		return this.#left.signal
	}

	override connectedCallback(): void {
		super.connectedCallback()
		this.#begin()
	}

	/** Enters again if the address has another id. */
	protected override willUpdate(changed: PropertyValues): void {
		if (this.hasUpdated && [...changed.values()].some((before) => typeof before === 'string')) this.#begin()
	}

	#begin(): void {
		this.#left.abort()
		this.#left = new AbortController()
		void this.attempt(() => this.enter())
	}

	override disconnectedCallback(): void {
		this.#left.abort()
		super.disconnectedCallback()
	}

	/** Reads the page's data. Called when the page opens, and when the address has another id. */
	abstract enter(): Promise<void>

	/** Reads the data again after a change. */
	protected read(): Promise<void> {
		return this.enter()
	}

	/** Shows the latest error, and the content. */
	protected override render(): TemplateResult {
		const content = this.content()
		const problem = this.problem === null ? nothing : problemOf(this.problem)
		// The same template with and without an error, so that a form keeps its input.
		return html`${problem}${problem !== nothing && content === loading ? nothing : content}`
	}

	protected abstract content(): TemplateResult

	/** Runs `work`, and shows its error until the next attempt. False if it failed. */
	protected async attempt(work: () => Promise<unknown>): Promise<boolean> {
		const { signal } = this
		try {
			await work()
			this.problem = null
			return true
		} catch (error) {
			if (signal.aborted) return false
			this.problem = error
			return false
		} finally {
			this.requestUpdate()
		}
	}

	/** As `attempt`, with `what` as `busy` meanwhile. */
	protected attemptBusy(what: string, work: () => Promise<unknown>): void {
		this.busy = what
		this.requestUpdate()
		void this.attempt(() => work().finally(() => (this.busy = '')))
	}

	/** Sends a change, clears the form, and reads the page's data again. */
	protected apply(method: string, path: string, body?: unknown, form?: HTMLFormElement): void {
		void this.attempt(async () => {
			await change(method, path, body)
			form?.reset()
			await this.read()
		})
	}

	/**
	 * A button that deletes something once the reader has confirmed it. `name`: for screen readers, if the label does not say what it
	 * deletes. `done`: what follows; by default the page's data is read again.
	 */
	protected deleteButton(
		label: string,
		question: string,
		path: string,
		{ name, done = () => this.read() }: { name?: string; done?: () => unknown } = {},
	): TemplateResult {
		const remove = async (): Promise<void> => {
			await change('DELETE', path)
			await done()
		}
		return html`<button
			type="button"
			class="danger"
			aria-label=${name ?? nothing}
			@click=${() => confirm(question) && this.attempt(remove)}
		>
			${label}
		</button>`
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
						${errors.map((error) => html`<li><code>${error.path}</code> ${error.message}</li>`)}
					</ul>`
				: nothing
		}
	</div>`
}

/** Details that are shown on demand. */
export function folded(value: unknown): TemplateResult {
	if (typeof value === 'object' && value !== null && Object.keys(value).length === 0) return html``
	return html`<details>
		<summary>details</summary>
		<pre>${json(value)}</pre>
	</details>`
}

/** For a page without data: a text, and what to do next. */
export function empty(what: string, next?: unknown): TemplateResult {
	return html`<p class="empty">${what}${next === undefined ? nothing : html` ${next}`}</p>`
}

export function status(of: string): TemplateResult {
	return html`<span class="status ${of}">${of}</span>`
}

export const loading = html`<p class="empty">Loading …</p>`

/** A heading, empty for none, and the class of its cells: `wide` takes the room that others leave, `name` breaks long words only. */
type Column = string | readonly [heading: string, kind: 'wide' | 'name']

/**
 * A table that can be scrolled sideways; each row is a list of cells. `rows`: undefined until they have been read. `none`: what is
 * shown instead if there are no rows.
 */
export function table(
	columns: readonly Column[],
	rows: readonly (readonly unknown[])[] | undefined,
	none?: TemplateResult,
): TemplateResult {
	if (!rows) return loading
	if (none && rows.length === 0) return none
	const all = columns.map((column) => [column].flat())
	const head = html`<thead>
		<tr>
			${all.map(([heading]) => html`<th>${heading}</th>`)}
		</tr>
	</thead>`
	return html`<div class="scroll">
		<table>
			${all.some(([heading]) => heading) ? head : nothing}
			<tbody>
				${rows.map(
					(cells) =>
						html`<tr>
							${cells.map((cell, at) => html`<td class=${all[at]?.[1] ?? nothing}>${cell}</td>`)}
						</tr>`,
				)}
			</tbody>
		</table>
	</div>`
}

/** A selection list. `any`: the label of an additional option whose value is the empty text. */
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
			${names.map((name) => html`<option value=${name} .selected=${name === current}>${name}</option>`)}
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

/** Returns a function that calls `work` after `ms`, once for all calls until then: hundreds of events may arrive at once. */
export function throttle(ms: number, work: () => unknown): () => void {
	let timer: number | undefined
	return () => {
		timer ??= setTimeout(() => {
			timer = undefined
			work()
		}, ms)
	}
}
