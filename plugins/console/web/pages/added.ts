import { html } from 'lit'
import type { TemplateResult } from 'lit'
import type { ConsoleAccess } from '../../access.ts'
import { change, get } from '../api.ts'
import { Page } from '../page.ts'
import { listen } from '../stream.ts'

/** A page that a plugin adds, filled by its module. */
class Added extends Page {
	static override properties = { file: { attribute: false }, name: { attribute: false } }
	declare file: string
	declare name: string

	async enter(): Promise<void> {
		const { signal } = this
		await this.updateComplete
		const place = document.createElement('div')
		this.querySelector('.added')?.replaceChildren(place)
		const module = (await import(`/console/${this.file}`)) as {
			show?: (place: HTMLElement, at: ConsoleAccess) => unknown
		}
		if (signal.aborted) return
		if (typeof module.show !== 'function') throw new Error('the module of this page exports no function "show"')
		await module.show(place, {
			signal,
			get: (path) => get(path, signal),
			change: (method, path, body) => change(method, path, body),
			follow: (query, onEvent) => void listen({ query, signal, onEvent: (event) => onEvent({ ...event }) }),
		})
	}

	protected content(): TemplateResult {
		return html`<h1>${this.name}</h1>
			<div class="added"></div>`
	}
}

customElements.define('svc-added', Added)
