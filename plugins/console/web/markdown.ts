/**
 * Renders agents' Markdown. Each token of `marked` becomes elements of Lit, so text is never parsed as HTML. HTML is shown as text,
 * pictures as links. Links lead only to http, https and mailto.
 */
import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import type { Token, Tokens } from 'marked'
import { lexBounded } from '../../shared/bounded-markdown.ts'

/** In characters. Longer texts are shown unparsed, since parsing could take long. */
const LIMIT = 200_000

export function markdown(text: string): TemplateResult {
	if (text.length > LIMIT) return html`<pre>${text}</pre>`
	return html`<div class="markdown">${lexBounded(text).map(block)}</div>`
}

function block(token: Token): unknown {
	switch (token.type) {
		case 'space':
		case 'def':
			return nothing
		case 'heading':
			return html`<p class="heading">${inline(token)}</p>`
		case 'paragraph':
		case 'text':
			return html`<p>${inline(token)}</p>`
		case 'code':
			return html`<pre><code>${(token as Tokens.Code).text}</code></pre>`
		case 'blockquote':
			return html`<blockquote>${(token as Tokens.Blockquote).tokens.map(block)}</blockquote>`
		case 'hr':
			return html`<hr />`
		case 'list': {
			const { ordered, start, items } = token as Tokens.List
			const entries = items.map(
				(item) => html`<li>${item.tokens.map((part) => (item.loose ? block(part) : tight(part)))}</li>`,
			)
			return ordered
				? html`<ol dir="auto" start=${Number(start) || 1}>
						${entries}
					</ol>`
				: html`<ul dir="auto">
						${entries}
					</ul>`
		}
		case 'table': {
			const { header, rows } = token as Tokens.Table
			return html`<table dir="auto">
				<thead>
					<tr>
						${header.map((cell) => html`<th>${cell.tokens.map(span)}</th>`)}
					</tr>
				</thead>
				<tbody>
					${rows.map(
						(row) =>
							html`<tr>
								${row.map((cell) => html`<td>${cell.tokens.map(span)}</td>`)}
							</tr>`,
					)}
				</tbody>
			</table>`
		}
		default:
			return html`<p>${token.raw}</p>`
	}
}

/** For list items without blank lines between them, which contain no paragraphs. */
function tight(token: Token): unknown {
	return token.type === 'text' || token.type === 'paragraph' ? inline(token) : block(token)
}

function inline(token: Token): unknown {
	const inner = (token as { tokens?: Token[] }).tokens
	return inner ? inner.map(span) : ((token as { text?: string }).text ?? token.raw)
}

function span(token: Token): unknown {
	switch (token.type) {
		case 'strong':
			return html`<strong>${inline(token)}</strong>`
		case 'em':
			return html`<em>${inline(token)}</em>`
		case 'del':
			return html`<del>${inline(token)}</del>`
		case 'codespan':
			return html`<code>${(token as Tokens.Codespan).text}</code>`
		case 'br':
			return html`<br />`
		case 'link':
		case 'image': {
			const { href, text } = token as Tokens.Link
			return isSafe(href)
				? html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow"
						>${token.type === 'link' ? inline(token) : text}</a
					>`
				: token.raw
		}
		case 'escape':
		case 'text':
			return (token as Tokens.Text).tokens ? inline(token) : (token as Tokens.Text).text
		default:
			return token.raw
	}
}

function isSafe(href: string): boolean {
	const protocol = URL.parse(href)?.protocol
	return protocol === 'https:' || protocol === 'http:' || protocol === 'mailto:'
}
