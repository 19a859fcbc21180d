import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'

const tabs = { '': 'Settings', memory: 'Memory', mcp: 'MCP servers', webhooks: 'Webhooks', schedule: 'Schedule' }

/** The heading of an agent's pages, with links to them. */
export function agentHead(agent: string, current: keyof typeof tabs): TemplateResult {
	return html`<h1>${agent}</h1>
		<nav class="tabs" aria-label="Pages of ${agent}">
			${Object.entries(tabs).map(
				([name, title]) =>
					html`<a
						href="#/agents/${agent}${name === '' ? '' : `/${name}`}"
						aria-current=${name === current ? 'page' : nothing}
						>${title}</a
					>`,
			)}
			<a href="#/chat/${agent}">Chat</a>
		</nav>`
}
