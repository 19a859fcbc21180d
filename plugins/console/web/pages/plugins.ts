import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path } from '../api.ts'
import { when } from '../format.ts'
import { Page, status, table } from '../page.ts'

interface Plugin {
	name: string
	version: string | null
	state: 'running' | 'failing' | 'failed'
	last_error: string | null
	generation: number | null
	built_in: boolean
	contract: string | null
	since: string | null
	holds: {
		routes: string[]
		tools: string[]
		events: string[]
		extends: string[]
		timers: number
		resources: string[]
	} | null
}

/** What runs, what each plugin holds, and why one does not run. */
class Plugins extends Page {
	#plugins: Plugin[] = []
	/** The one that starts again at this moment. */
	#starting = ''

	async enter(): Promise<void> {
		const found = await get<Plugin[]>('/v1/plugins', this.left.signal)
		const rank = (one: Plugin): number => (one.last_error === null ? 2 : 0) + Number(one.built_in)
		this.#plugins = found.toSorted((a, b) => rank(a) - rank(b))
	}

	protected content(): TemplateResult {
		return html`
			<h1>Plugins</h1>
			<p class="note">
				Switch them on and off, and change their settings, in the <a href="#/config">configuration</a>.
			</p>
			${table(
				['Plugin', 'State', 'Version', 'Started', 'Holds', ''],
				this.#plugins.map((one) => this.#row(one)),
			)}
		`
	}

	#row(one: Plugin): TemplateResult {
		const { name, version, state, last_error, built_in, contract, since, generation } = one
		return html`<tr>
			<td>${name}${built_in ? nothing : html` <span class="chip">third party</span>`}</td>
			<td class="wide">${status(state)}${last_error === null ? nothing : html`<p class="lines">${last_error}</p>`}</td>
			<td>${version ?? '–'}${contract === null ? nothing : html` (contract ${contract})`}</td>
			<td>${since === null ? '–' : html`${when(since)}, generation ${generation}`}</td>
			<td class="wide">${this.#holdings(one)}</td>
			<td>
				<button aria-label="Reload ${name}" ?disabled=${this.#starting !== ''} @click=${() => this.#reload(name)}>
					${this.#starting === name ? 'Reloading …' : 'Reload'}
				</button>
			</td>
		</tr>`
	}

	#holdings({ holds }: Plugin): unknown {
		if (!holds) return '–'
		const { timers, ...lists } = holds
		const parts = Object.entries({ ...lists, timers: Array<string>(timers) }).filter(([, list]) => list.length > 0)
		const named = Object.entries(lists).filter(([, list]) => list.length > 0)
		if (parts.length === 0) return '–'
		return html`<details>
			<summary>${parts.map(([what, list]) => `${what} ${list.length}`).join(', ')}</summary>
			${named.map(
				([what, list]) =>
					html`<b>${what}</b>
						<pre>${list.join('\n')}</pre>`,
			)}
		</details>`
	}

	#reload(name: string): void {
		this.#starting = name
		this.requestUpdate()
		void this.attempt(async () => {
			try {
				await change('POST', path`/v1/plugins/${name}/reload`)
				await this.enter()
			} finally {
				this.#starting = ''
			}
		})
	}
}

customElements.define('svc-plugins', Plugins)
