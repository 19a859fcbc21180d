/** What the next request to a conversation's model would contain, and how much of the context window it would use. */
import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get, path } from './api.ts'
import { count } from './format.ts'
import { Page, table } from './page.ts'

interface Item {
	kind: 'instructions' | 'tools' | 'earlier' | 'turn' | 'prompt'
	shown?: 'whole' | 'stubs'
	tokens: number
}

interface Context {
	provider: string
	model: string
	budget: number
	tokens: number
	items: Item[]
	summary: { turns: number; text: string } | null
}

const names: Record<Item['kind'], string> = {
	instructions: 'Persona and instructions',
	tools: 'Tools',
	earlier: 'Earlier turns, summarized or listed',
	turn: 'Turns',
	prompt: 'Prompt',
}

class ContextView extends Page {
	static override properties = { agent: { attribute: false }, conversation: { attribute: false } }
	declare agent: string
	declare conversation: string
	#context: Context | undefined

	async enter(): Promise<void> {
		const at = path`/v1/agents/${this.agent}/conversations/${this.conversation}/context`
		this.#context = await get<Context>(at, this.signal)
	}

	protected content(): TemplateResult {
		if (!this.#context) return html``
		const { provider, model, budget, tokens, items, summary } = this.#context
		const kinds = Object.groupBy(items, ({ kind }) => kind)
		return html`
			<p>
				<meter min="0" max=${budget} value=${tokens} aria-label="Context in use"></meter>
				About ${count(tokens)} of ${count(budget)} tokens of a request to ${provider} (${model}).
			</p>
			${table(
				['', ''],
				Object.entries(kinds).map(([kind, list]) => {
					const sum = list.reduce((total, item) => total + item.tokens, 0)
					const stubs = list.filter(({ shown }) => shown === 'stubs').length
					const name = names[kind as Item['kind']]
					return [
						`${kind === 'turn' ? `${count(list.length)} ` : ''}${name}${stubs > 0 ? `, ${count(stubs)} of them shortened` : ''}`,
						html`<meter min="0" max=${tokens} value=${sum} aria-label="Tokens of ${kind}"></meter> ${count(sum)}`,
					]
				}),
			)}
			${
				summary
					? html`<details>
							<summary>Summary of ${count(summary.turns)} older turns</summary>
							<p class="lines">${summary.text}</p>
						</details>`
					: nothing
			}
		`
	}
}

customElements.define('svc-context', ContextView)
