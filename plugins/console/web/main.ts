/** The frame of the console: navigation, the current page, sign-in, and whether the gateway responds. */
import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { keyed } from 'lit/directives/keyed.js'
import { html as staticHtml, unsafeStatic } from 'lit/static-html.js'
import { ApiError, change, get, hasToken, setToken, tokenNeeded } from './api.ts'
import { empty, loading, PlainElement } from './page.ts'

interface Entry {
	title: string
	load: () => Promise<unknown>
	/** Renders the page. `rest`: the parts of the address after the page's name. Default: the element `svc-NAME`. */
	show?: (rest: string[], query: string) => TemplateResult
}

const pages: Record<string, Entry> = {
	home: { title: 'Home', load: () => import('./pages/home.ts') },
	inbox: { title: 'Inbox', load: () => import('./pages/inbox.ts') },
	runs: {
		title: 'Runs',
		load: () => Promise.all([import('./pages/runs.ts'), import('./pages/run.ts')]),
		show: ([id], query) =>
			id === undefined ? html`<svc-runs .query=${query}></svc-runs>` : html`<svc-run .runId=${id}></svc-run>`,
	},
	chat: {
		title: 'Chat',
		load: () => import('./pages/chat.ts'),
		show: ([agent = '', conversation = '']) =>
			html`<svc-chat .agent=${agent} .conversation=${conversation}></svc-chat>`,
	},
	agents: {
		title: 'Agents',
		load: () => import('./pages/agents.ts'),
		show: ([name = '', what = '', skill = '']) => ofAgent(name, what, skill),
	},
	channels: { title: 'Channels', load: () => import('./pages/channels.ts') },
	models: { title: 'Models', load: () => import('./pages/models.ts') },
	vault: { title: 'Vault', load: () => import('./pages/vault.ts') },
	tokens: { title: 'Tokens', load: () => import('./pages/tokens.ts') },
	events: { title: 'Events', load: () => import('./pages/events.ts') },
	plugins: { title: 'Plugins', load: () => import('./pages/plugins.ts') },
	backups: { title: 'Backups', load: () => import('./pages/backups.ts') },
	cluster: { title: 'Cluster', load: () => import('./pages/cluster.ts') },
	config: { title: 'Configuration', load: () => import('./pages/config.ts') },
}

/** Pages of one agent, each with the element `svc-NAME`. */
const agentPages = ['memory', 'mcp', 'webhooks', 'schedule']

/** A page of one agent, or the list of all agents. */
function ofAgent(name: string, what: string, skill: string): TemplateResult {
	if (name !== '' && what === 'skills') return html`<svc-skill .agent=${name} .skill=${skill}></svc-skill>`
	if (name === '' || !agentPages.includes(what)) return html`<svc-agents .name=${name}></svc-agents>`
	return staticHtml`<${elementOf(what)} .agent=${name}></${elementOf(what)}>`
}

function elementOf(page: string) {
	return unsafeStatic(`svc-${page}`)
}

/** A page that a plugin adds, at `#/page/PLUGIN`. */
interface AddedPage {
	plugin: string
	title: string
	file: string
}

/** The response of `GET /v1/auth/me`. */
type Caller = { kind: 'local' | 'token' } | { kind: 'oidc'; id: string; label?: string }

const CHECK_MS = 5_000

class Console extends PlainElement {
	#name = 'home'
	#rest: string[] = []
	#query = ''
	/** Pages whose code has been loaded. */
	readonly #loaded = new Set<string>()
	#isUnreachable = false
	#needsToken = false
	#signInError = ''
	/** The identity provider, if any. Read once a token is needed. */
	#issuer: string | null = null
	/** The person who has signed in there. */
	#person = ''
	/** Undefined until they have been read. */
	#added: AddedPage[] | undefined
	/** Incremented to make the page read everything again. */
	#reloads = 0
	/** The link of the current page in the navigation. */
	#currentLink: Element | null = null

	override connectedCallback(): void {
		super.connectedCallback()
		window.addEventListener('hashchange', () => this.#go())
		tokenNeeded.addEventListener('needed', () => {
			this.#needsToken = true
			this.#signInError = hasToken() ? 'The gateway refuses this token.' : ''
			this.requestUpdate()
			void this.#readIssuer()
		})
		this.#go()
		setInterval(() => void this.#check(), CHECK_MS)
		void this.#readCaller()
		void this.#readAddedPages()
	}

	#go(): void {
		const [address = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?')
		const [name = '', ...rest] = address.split('/').map(decoded)
		this.#name = Object.hasOwn(pages, name) || name === 'page' ? name : 'home'
		this.#rest = rest
		this.#query = query
		document.title = `${this.#entry()?.title ?? ''} · svc gateway`
		void this.#load(this.#name)
		this.requestUpdate()
	}

	/** The current page; undefined if the address is that of a plugin without a page. */
	#entry(): Entry | undefined {
		if (this.#name !== 'page') return pages[this.#name]
		const page = this.#added?.find(({ plugin }) => plugin === this.#rest[0])
		if (!page) return undefined
		const { title, file } = page
		return {
			title,
			load: () => import('./pages/added.ts'),
			show: () => html`<svc-added .file=${file} .name=${title}></svc-added>`,
		}
	}

	async #load(name: string): Promise<void> {
		try {
			await this.#entry()?.load()
			this.#loaded.add(name)
			this.requestUpdate()
		} catch {
			if (await isOutdated()) return location.reload()
			this.#isUnreachable = true
			this.requestUpdate()
		}
	}

	/** Checks whether the gateway responds. Once it responds again, the page reads everything again. */
	async #check(): Promise<void> {
		const isUnreachable = await get('/v1/health').then(
			() => false,
			(error: unknown) => error instanceof ApiError && (error.status === 0 || error.status === 503),
		)
		if (this.#isUnreachable && !isUnreachable) this.#reload()
		if (isUnreachable === this.#isUnreachable) return
		this.#isUnreachable = isUnreachable
		this.requestUpdate()
	}

	#reload(): void {
		this.#reloads++
		void this.#load(this.#name)
		void this.#readAddedPages()
		this.requestUpdate()
	}

	async #readAddedPages(): Promise<void> {
		const found = await get<{ pages: AddedPage[] }>('/v1/console').catch(() => undefined)
		this.#added = found?.pages ?? this.#added ?? []
		this.#go()
	}

	async #readCaller(): Promise<void> {
		const me = await get<Caller>('/v1/auth/me').catch(() => undefined)
		this.#person = me?.kind === 'oidc' ? (me.label ?? me.id) : ''
		this.requestUpdate()
	}

	async #readIssuer(): Promise<void> {
		const login = await get<{ issuer: string }>('/v1/auth/login').catch(() => null)
		this.#issuer = login?.issuer ?? null
		this.requestUpdate()
	}

	async #signIn(): Promise<void> {
		try {
			setToken(null)
			const { url } = await change<{ url: string }>('POST', '/v1/auth/login')
			location.assign(url)
		} catch (error) {
			this.#signInError = error instanceof Error ? error.message : String(error)
			this.requestUpdate()
		}
	}

	async #signOut(): Promise<void> {
		await change('POST', '/v1/auth/logout').catch(() => undefined)
		location.reload()
	}

	#enterToken(event: SubmitEvent): void {
		event.preventDefault()
		const field = (event.target as HTMLFormElement).elements.namedItem('token') as HTMLInputElement
		setToken(field.value.trim())
		field.value = ''
		this.#needsToken = false
		this.#reload()
	}

	protected override render(): TemplateResult {
		return html`
			<a class="skip" href="#main" @click=${this.#focusMain}>Skip to the content</a>
			<header>
				<a class="brand" href="#/home">svc gateway</a>
				<nav aria-label="Pages">
					${Object.entries(pages).map(
						([name, { title }]) =>
							html`<a href="#/${name}" aria-current=${name === this.#name ? 'page' : nothing}>${title}</a>`,
					)}
					${this.#added?.map(
						({ plugin, title }) =>
							html`<a
								href="#/page/${plugin}"
								aria-current=${this.#name === 'page' && this.#rest[0] === plugin ? 'page' : nothing}
								>${title}</a
							>`,
					)}
				</nav>
				${this.#person === '' ? nothing : html`<button title=${this.#person} @click=${this.#signOut}>Sign out</button>`}
			</header>
			${
				this.#isUnreachable
					? html`<div class="problem banner" role="alert">
							The gateway does not answer. This page shows the last data it got, and continues once the gateway is back.
						</div>`
					: nothing
			}
			<main id="main" tabindex="-1">${this.#needsToken ? this.#tokenForm() : this.#page()}</main>
		`
	}

	/** Scrolls to the link of a new page: on a phone, the navigation is wider than the screen. */
	protected override updated(): void {
		const current = this.querySelector('nav [aria-current]')
		if (current !== this.#currentLink) current?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
		this.#currentLink = current
	}

	#focusMain(event: Event): void {
		event.preventDefault()
		this.querySelector<HTMLElement>('main')?.focus()
	}

	#page(): TemplateResult {
		const entry = this.#entry()
		if (!entry && this.#added) return empty('No plugin adds this page.')
		if (!entry || !this.#loaded.has(this.#name)) return loading
		const shown =
			entry.show?.(this.#rest, this.#query) ?? staticHtml`<${elementOf(this.#name)}></${elementOf(this.#name)}>`
		// A new element after a reload.
		return html`${keyed(this.#reloads, shown)}`
	}

	#tokenForm(): TemplateResult {
		return html`<form class="card narrow" @submit=${this.#enterToken}>
			<h1>Sign in</h1>
			<p>This gateway requires a token. Create one on its machine: <code>svc tokens create --scope '*'</code></p>
			${this.#signInError ? html`<p class="problem" role="alert">${this.#signInError}</p>` : nothing}
			${
				this.#issuer === null
					? nothing
					: html`<p>
							<button type="button" @click=${this.#signIn}>Sign in with ${URL.parse(this.#issuer)?.host}</button>
						</p>`
			}
			<label>Token <input name="token" type="password" autocomplete="off" spellcheck="false" required /></label>
			<p class="note">The token is kept in this tab until you close it.</p>
			<button class="primary">Sign in</button>
		</form>`
	}
}

/** Whether the gateway now serves another version of the console. It no longer has the files of this one. */
async function isOutdated(): Promise<boolean> {
	try {
		const response = await fetch(location.pathname, { headers: { accept: 'text/html' } })
		return response.ok && !(await response.text()).includes(new URL(import.meta.url).pathname)
	} catch {
		return false // the gateway does not answer
	}
}

function decoded(part: string): string {
	try {
		return decodeURIComponent(part)
	} catch {
		return part
	}
}

customElements.define('svc-console', Console)
