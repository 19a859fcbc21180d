import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { get, path } from '../api.ts'
import { when } from '../format.ts'
import { loading, Page, status } from '../page.ts'
import { markInvisible } from '../invisible.ts'

interface Review {
	name: string
	description: string
	status: string
	installed_at: string
	digest: string
	source: { kind: string; url?: string }
	files: { path: string; size: number; kind: string; change: string | null }[]
	runtime: string | null
	permissions: { primitives: string[]; hosts: string[]; secrets: string[] }
	warnings: unknown[]
	findings: unknown[]
	diff: string | null
	program: string | null
	markdown: string
}

/** The review of a skill before its approval: its text, files, permissions and findings. */
class SkillReview extends Page {
	static override properties = { agent: { attribute: false }, skill: { attribute: false } }
	declare agent: string
	declare skill: string
	#review: Review | undefined
	/** The texts of the opened files, by path. */
	#texts = new Map<string, string>()

	async enter(): Promise<void> {
		this.#texts.clear()
		this.#review = await get<Review>(path`/v1/agents/${this.agent}/skills/${this.skill}`, this.signal)
	}

	protected content(): TemplateResult {
		const review = this.#review
		if (!review) return loading
		const { digest, permissions } = review
		const { primitives, hosts, secrets } = permissions
		const at = path`/v1/agents/${this.agent}/skills/${this.skill}`
		const done = () => (location.hash = path`/agents/${this.agent}`)
		return html`
			<h1>${review.name} ${status(review.status)}</h1>
			<p>${markInvisible(review.description)}</p>
			<p class="note">
				For <a href="#/agents/${this.agent}">${this.agent}</a> · from ${review.source.url ?? review.source.kind} ·
				installed ${when(review.installed_at)} · SHA-256 <code>${digest}</code>
			</p>
			${[...review.findings, ...review.warnings].map((one) => html`<p class="warning">${textOf(one)}</p>`)}
			<h2>What it may do</h2>
			<ul>
				<li>Runs a program: ${review.program === null ? 'no, it is instructions only' : `yes (${review.runtime})`}</li>
				<li>Tools: ${listOf(primitives)}</li>
				<li>Hosts: ${listOf(hosts)}</li>
				<li>Secrets: ${listOf(secrets)}</li>
			</ul>
			${
				review.program === null
					? nothing
					: html`<h2>Program</h2>
							<pre>${markInvisible(review.program)}</pre>`
			}
			<h2>Text</h2>
			<pre>${markInvisible(review.markdown)}</pre>
			${
				review.diff === null
					? nothing
					: html`<h2>Changes to the active revision</h2>
							<pre>${markInvisible(review.diff)}</pre>`
			}
			<h2>Files</h2>
			<ul>
				${review.files.map((file) => this.#file(file))}
			</ul>
			<div class="row">
				${
					review.status === 'quarantined'
						? html`<button class="primary" @click=${() => this.apply('POST', `${at}/approve`, { digest })}>
								Approve this text
							</button>`
						: nothing
				}
				${this.deleteButton('Remove', 'Remove this skill?', at, { done })}
			</div>
		`
	}

	/** Reads the content when it is opened. */
	#file({ path: name, size, kind, change: changed }: Review['files'][number]): TemplateResult {
		const text = this.#texts.get(name)
		return html`<li>
			<code>${markInvisible(name)}</code> ${size} bytes, ${kind}${changed === null ? '' : `, ${changed}`}
			${
				text === undefined
					? html`<button aria-label="Show ${name}" @click=${() => this.#open(name)}>Show</button>`
					: html`<pre>${markInvisible(text)}</pre>`
			}
		</li>`
	}

	#open(name: string): void {
		void this.attempt(async () => {
			const url = path`/v1/agents/${this.agent}/skills/${this.skill}/files?path=${name}`
			const { text, base64 } = await get<{ text?: string; base64?: string }>(url, this.signal)
			this.#texts.set(name, text ?? `Not a text. The bytes in base64:\n${base64 ?? ''}`)
		})
	}
}

function listOf(values: string[]): string {
	return values.length === 0 ? 'none' : values.join(', ')
}

function textOf(finding: unknown): string {
	if (typeof finding === 'string') return finding
	const { message, line } = (finding ?? {}) as { message?: string; line?: number }
	return message === undefined ? JSON.stringify(finding) : line === undefined ? message : `Line ${line}: ${message}`
}

customElements.define('svc-skill', SkillReview)
