import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { change, get, path } from '../api.ts'
import { when } from '../format.ts'
import { Page, status, table } from '../page.ts'

export interface Plugin {
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

/** The plugins with their state and the resources that they hold. */
class Plugins extends Page {
	#plugins: Plugin[] = []

	async enter(): Promise<void> {
		const found = await get<Plugin[]>('/v1/plugins', this.signal)
		// Plugins with errors first, then those of third parties.
		const rank = (plugin: Plugin): number => (plugin.last_error === null ? 2 : 0) + Number(plugin.built_in)
		this.#plugins = found.toSorted((a, b) => rank(a) - rank(b))
	}

	protected content(): TemplateResult {
		return html`
			<h1>Plugins</h1>
			<p class="note">
				Switch them on and off, and change their settings, in the <a href="#/config">configuration</a>.
			</p>
			${table(
				['Plugin', ['State', 'wide'], 'Version', 'Started', ['Holds', 'wide'], ''],
				this.#plugins.map((plugin) => this.#row(plugin)),
			)}
		`
	}

	#row(plugin: Plugin): unknown[] {
		const { name, version, state, last_error, built_in, contract, since, generation } = plugin
		return [
			html`${name}${built_in ? nothing : html` <span class="chip">third party</span>`}`,
			html`${status(state)}${last_error === null ? nothing : html`<p class="lines">${last_error}</p>`}`,
			`${version ?? '–'}${contract === null ? '' : ` (contract ${contract})`}`,
			since === null ? '–' : `${when(since)}, generation ${generation}`,
			this.#holdings(plugin),
			html`<button aria-label="Reload ${name}" ?disabled=${this.busy !== ''} @click=${() => this.#reload(name)}>
				${this.busy === name ? 'Reloading …' : 'Reload'}
			</button>`,
		]
	}

	#holdings({ holds }: Plugin): unknown {
		if (!holds) return '–'
		const { timers, ...lists } = holds
		const resources = Object.entries(lists).filter(([, list]) => list.length > 0)
		const counts = resources.map(([what, list]) => `${what} ${list.length}`)
		if (timers > 0) counts.push(`timers ${timers}`)
		if (counts.length === 0) return '–'
		return html`<details>
			<summary>${counts.join(', ')}</summary>
			${resources.map(
				([what, list]) =>
					html`<b>${what}</b>
						<pre>${list.join('\n')}</pre>`,
			)}
		</details>`
	}

	#reload(name: string): void {
		this.attemptBusy(name, async () => {
			await change('POST', path`/v1/plugins/${name}/reload`)
			await this.enter()
		})
	}
}

customElements.define('svc-plugins', Plugins)
