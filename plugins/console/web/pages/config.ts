import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import type { FieldError } from '../../../../core/errors.ts'
import type { ConfigVerdict, FileView } from '../../../configuration/contract.ts'
import { change, get } from '../api.ts'
import { empty, loading, Page, status, table } from '../page.ts'

const stateLabels = { in_force: 'in force', refused: 'refused', pending: 'not read yet' }

/** gateway.yaml: its text, the errors with their lines, and the effect of a change. */
class Configuration extends Page {
	#file: FileView | undefined
	#text = ''
	#verdict: ConfigVerdict | undefined
	#isSaved = false

	async enter(): Promise<void> {
		const file = await get<FileView>('/v1/config', this.signal)
		const isUntouched = this.#text === (this.#file?.text ?? '')
		this.#file = file
		if (isUntouched) this.#text = file.text
	}

	protected content(): TemplateResult {
		const file = this.#file
		if (!file) return loading
		const errors = this.#verdict?.errors ?? file.errors
		return html`
			<h1>Configuration ${status(stateLabels[file.state])}</h1>
			<p class="note">
				<code>${file.file}</code> · values that look like secrets are hidden; leave <code>(hidden 1)</code> as it is to
				keep one
			</p>
			${
				file.error !== null && !this.#verdict
					? html`<p class="problem" role="alert">This file is refused, and the last good settings stay in force:</p>`
					: nothing
			}
			${this.#errors(errors)}
			<textarea
				class="code"
				aria-label="gateway.yaml"
				rows="28"
				spellcheck="false"
				.value=${this.#text}
				@input=${this.#typed}
			></textarea>
			<div class="row">
				<button @click=${() => this.#check()}>Check</button>
				<button class="primary" ?disabled=${this.#text === file.text} @click=${() => this.#apply(file)}>Apply</button>
				<button ?disabled=${this.#text === file.text} @click=${() => this.#reset(file)}>Discard changes</button>
			</div>
			${this.#isSaved ? html`<p class="good" role="status">Applied.</p>` : nothing}
			${this.#verdict?.valid ? this.#changes(this.#verdict) : nothing}
		`
	}

	#errors(errors: FieldError[]): unknown {
		if (errors.length === 0) return nothing
		return html`<ul class="problem" role="alert">
			${errors.map(
				({ path, message, line }) =>
					html`<li>
						${line === undefined ? nothing : html`<button class="link" @click=${() => this.#goTo(line)}>Line ${line}</button>`}
						<code>${path}</code> ${message}
					</li>`,
			)}
		</ul>`
	}

	#changes({ warnings, changes }: ConfigVerdict): TemplateResult {
		const shown = (value: unknown): string => (value === undefined ? '–' : JSON.stringify(value))
		return html`${warnings.map((line) => html`<p class="warning">${line}</p>`)}
		${table(
			['Setting', 'Current', 'New', ''],
			changes.map(({ path, before, after, needs_restart }) => [
				html`<code>${path}</code>`,
				shown(before),
				shown(after),
				needs_restart ? 'at the next start' : nothing,
			]),
			empty('This text changes no setting.'),
		)}`
	}

	#goTo(line: number): void {
		const field = this.querySelector('textarea')
		if (!field) return
		const lines = field.value.split('\n')
		const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0)
		field.focus()
		field.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0))
	}

	#typed(event: InputEvent): void {
		this.#text = (event.target as HTMLTextAreaElement).value
		this.#isSaved = false
		this.requestUpdate()
	}

	#reset({ text }: FileView): void {
		this.#text = text
		this.#verdict = undefined
		this.requestUpdate()
	}

	#check(): void {
		void this.attempt(async () => {
			this.#verdict = await change<ConfigVerdict>('POST', '/v1/config/validate', { text: this.#text })
		})
	}

	#apply({ digest }: FileView): void {
		void this.attempt(async () => {
			this.#verdict = await change<ConfigVerdict>('POST', '/v1/config/validate', { text: this.#text })
			if (!this.#verdict.valid) return
			const file = await change<FileView>('PUT', '/v1/config', { text: this.#text, digest })
			this.#file = file
			this.#text = file.text
			this.#verdict = undefined
			this.#isSaved = file.state === 'in_force'
		})
	}
}

customElements.define('svc-config', Configuration)
