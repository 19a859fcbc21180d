/** A file of an agent: a button that saves it, and the picture itself if browsers can show it. */
import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { sizeText } from '../../shared/size-text.ts'
import { path, send } from './api.ts'
import { Page } from './page.ts'
import type { StoredFile } from './types.ts'

/** Without SVG, which could load other resources. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
/** Larger pictures can only be saved. */
const PICTURE_BYTES = 4 * 1024 * 1024

/** Each blob has its own element (see `keyed`), so that its picture is read once. */
class FileView extends Page {
	static override properties = { agent: { attribute: false }, file: { attribute: false } }
	declare agent: string
	declare file: StoredFile
	#picture = ''

	async enter(): Promise<void> {
		const { media_type, size } = this.file
		if (PICTURES.has(media_type) && size <= PICTURE_BYTES) this.#picture = await dataUrl(await this.#bytes())
	}

	protected content(): TemplateResult {
		const { name = this.file.media_type, transcript, size } = this.file
		return html`${this.#picture === '' ? nothing : html`<img class="picture" src=${this.#picture} alt=${name} />`}
			<p class="note">
				<button type="button" aria-label="Save ${name}" @click=${() => this.attempt(() => this.#save(name))}>
					📎 ${name}
				</button>
				${sizeText(size)}
			</p>
			${transcript ? html`<p class="note">“${transcript}”</p>` : nothing}`
	}

	async #save(name: string): Promise<void> {
		const url = URL.createObjectURL(await this.#bytes())
		const link = Object.assign(document.createElement('a'), { href: url, download: name })
		link.click()
		setTimeout(() => URL.revokeObjectURL(url), 60_000)
	}

	async #bytes(): Promise<Blob> {
		return (await send(path`/v1/agents/${this.agent}/blobs/${this.file.blob}`)).blob()
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
