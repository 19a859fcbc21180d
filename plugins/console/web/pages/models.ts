import { html, nothing } from 'lit'
import type { TemplateResult } from 'lit'
import { presets } from '../../../shared/model-presets.ts'
import type { Preset } from '../../../shared/model-presets.ts'
import { change, get, path } from '../api.ts'
import { duration } from '../format.ts'
import { empty, Page, table } from '../page.ts'

interface Provider {
	name: string
	kind: string
	base_url: string | null
	model: string | null
	key: string
	key_secret?: string
	is_default: boolean
	fallback: boolean
}

interface Checked {
	state: string
	message: string | null
	models: string[]
	answers: boolean
	duration_ms: number
}

interface Form {
	name: string
	kind: string
	base_url: string
	model: string
	key: string
	secret: string
}

const offered = Object.values<Preset>(presets)

const blank: Form = { name: '', kind: 'openai', base_url: '', model: '', key: '', secret: '' }

/** The configured providers, and a form that tests and adds one. */
class Models extends Page {
	#providers: Provider[] | undefined
	#form = blank
	#checked: Checked | undefined

	async enter(): Promise<void> {
		this.#providers = await get<Provider[]>('/v1/providers', this.signal)
	}

	protected content(): TemplateResult {
		return html`
			<h1>Models</h1>
			${table(
				[['Name', 'name'], 'Kind', ['Address', 'wide'], ['Model', 'name'], 'Key', ''],
				this.#providers?.map(({ name, kind, base_url, model, key, key_secret, is_default, fallback }) => [
					name,
					kind,
					base_url ?? '–',
					model ?? '–',
					key === 'vault' ? `vault: ${key_secret}` : key,
					is_default ? html`<span class="status completed">default</span>` : fallback ? 'fallback' : nothing,
				]),
				empty('No provider is set up: the built-in offline model answers.'),
			)}
			<form class="card narrow" @submit=${this.#save}>
				<h2>Set up a provider</h2>
				<label
					>Where the models run
					<select @change=${this.#preset}>
						<option value="">choose …</option>
						${offered.map(({ label }) => html`<option>${label}</option>`)}
					</select>
				</label>
				${this.#field('name', 'Name', 'a name of your choice, such as openai')}
				${this.#field('base_url', 'Address of the API, with its version', 'http://127.0.0.1:8000/v1')}
				${this.#field('key', 'Key (stored in the vault; empty if none is needed)', '', 'password')}
				${this.#form.key === '' ? nothing : this.#field('secret', 'Name of the key in the vault', 'OPENAI_API_KEY')}
				<label
					>Model
					<input
						name="model"
						list="models"
						required
						.value=${this.#form.model}
						@input=${this.#typed}
						autocomplete="off"
					/>
					<datalist id="models">
						${this.#checked?.models.map((model) => html`<option value=${model}></option>`)}
					</datalist>
				</label>
				${this.#verdict()}
				<div class="row">
					<button type="button" @click=${() => this.#check(false)}>List models</button>
					<button type="button" @click=${() => this.#check(true)}>Test call</button>
					<button class="primary">Save and use</button>
				</div>
			</form>
		`
	}

	#field(name: keyof Form, label: string, placeholder: string, type = 'text'): TemplateResult {
		return html`<label
			>${label}
			<input
				name=${name}
				type=${type}
				placeholder=${placeholder}
				?required=${name === 'name' || name === 'base_url' || name === 'secret'}
				.value=${this.#form[name]}
				@input=${this.#typed}
				autocomplete="off"
				spellcheck="false"
			/>
		</label>`
	}

	#verdict(): unknown {
		if (this.busy !== '') return html`<p class="note" role="status">${this.busy}</p>`
		if (!this.#checked) return nothing
		const { state, message, models, answers, duration_ms } = this.#checked
		if (state !== 'ok') return html`<p class="problem" role="alert">${message}</p>`
		const result = answers
			? `The model answers (${duration(duration_ms)}).`
			: `The server lists ${models.length} models.`
		return html`<p class="good" role="status">${result}</p>`
	}

	#typed(event: InputEvent): void {
		const { name, value } = event.target as HTMLInputElement
		this.#form = { ...this.#form, [name]: value }
		this.requestUpdate()
	}

	#preset(event: Event): void {
		const label = (event.target as HTMLSelectElement).value
		const preset = offered.find((one) => one.label === label)
		if (!preset) return
		const { kind, base_url = '', name = 'models', isOpen, variable } = preset
		this.#form = { ...this.#form, kind, base_url, name, secret: isOpen ? '' : variable }
		this.#checked = undefined
		this.requestUpdate()
	}

	#check(withModel: boolean): void {
		const { kind, base_url, key, model } = this.#form
		this.attemptBusy(withModel ? `Trying ${model} …` : 'Asking the server for its models …', async () => {
			this.#checked = await change<Checked>('POST', '/v1/providers/check', {
				kind,
				base_url,
				...(key !== '' && { api_key: { value: key } }),
				...(withModel && model !== '' && { model }),
			})
		})
	}

	#save(event: SubmitEvent): void {
		event.preventDefault()
		const { name, kind, base_url, model, key, secret } = this.#form
		void this.attempt(async () => {
			if (key !== '') await storeSecret(secret, key)
			const provider = { kind, base_url, model, ...(key !== '' && { api_key: { secret } }) }
			const applied = await change<{ state: string; error: string | null }>('PATCH', '/v1/config', {
				set: { [`providers.${name}`]: provider, default_provider: name },
			})
			if (applied.state === 'refused') throw new Error(applied.error ?? 'the gateway refuses this')
			this.#form = blank
			this.#checked = undefined
			await this.enter()
		})
	}
}

/** Creates the secret, or replaces its value if there is one with this name. */
async function storeSecret(name: string, value: string): Promise<void> {
	const secrets = await get<{ id: string; name: string }[]>('/v1/vault/secrets')
	const known = secrets.find((one) => one.name === name)
	if (known) await change('PUT', path`/v1/vault/secrets/${known.id}`, { value })
	else await change('POST', '/v1/vault/secrets', { name, value })
}

customElements.define('svc-models', Models)
