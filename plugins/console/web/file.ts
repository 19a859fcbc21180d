/** A file of an agent: a button that saves it, and the picture itself if browsers can show it. */
import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { path, send } from './api.ts'
import { size } from './format.ts'
import { PlainElement } from './page.ts'
import type { StoredFile } from './types.ts'

/** Without SVG, which could load other resources. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** Larger pictures can only be saved. */
const PICTURE_BYTES = 4 * 1024 * 1024

class FileView extends PlainElement {
	static override properties = { agent: { attribute: false }, file: { attribute: false } }
	declare agent: string
	declare file: StoredFile
	#picture = ''
	#problem = ''
	/** The blob to which `#picture` and `#problem` belong. */
	#shown = ''

	protected override willUpdate(): void {
		const { blob, media_type, size: bytes } = this.file
		if (this.#shown === blob) return
		this.#shown = blob
		this.#picture = ''
		if (PICTURES.has(media_type) && bytes <= PICTURE_BYTES) void this.#show(blob)
	}

	protected override render(): TemplateResult {
		const { name = this.file.media_type, transcript, size: bytes } = this.file
		return html`${this.#picture === '' ? nothing : html`<img class="picture" src=${this.#picture} alt=${name} />`}
			<p class="note">
				<button type="button" aria-label="Save ${name}" @click=${() => this.#save(name)}>📎 ${name}</button>
				${size(bytes)} ${this.#problem}
			</p>
			${transcript ? html`<p class="note">“${transcript}”</p>` : nothing}`
	}

	async #show(blob: string): Promise<void> {
		await this.#attempt(async () => {
			const picture = await dataUrl(await this.#read())
			if (this.#shown === blob) this.#picture = picture
		})
	}

	async #save(name: string): Promise<void> {
		await this.#attempt(async () => {
			const url = URL.createObjectURL(await this.#read())
			const link = Object.assign(document.createElement('a'), { href: url, download: name })
			link.click()
			setTimeout(() => URL.revokeObjectURL(url), 60_000)
		})
	}

	async #read(): Promise<Blob> {
		return (await send(path`/v1/agents/${this.agent}/blobs/${this.file.blob}`)).blob()
	}

	async #attempt(work: () => Promise<void>): Promise<void> {
		try {
			await work()
			this.#problem = ''
		} catch (error) {
			this.#problem = error instanceof Error ? error.message : String(error)
		}
		this.requestUpdate()
	}
}

/** The page's Content-Security-Policy allows pictures only as `data:` URLs. */
function dataUrl(blob: Blob): Promise<string> {
	return new Promise((resolve, reject) => {
		const reader = new FileReader()
		reader.addEventListener('load', () => resolve(String(reader.result)))
		reader.addEventListener('error', () => reject(reader.error ?? new Error('the picture cannot be read')))
		reader.readAsDataURL(blob)
	})
}

customElements.define('svc-file', FileView)
