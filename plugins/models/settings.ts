import joi from 'joi'
import type { CustomHelpers, ObjectSchema } from 'joi'
import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, list, section } from '../../config/fields.ts'
import type { Environment } from '../../config/home.ts'
import { messages } from '../../config/messages.ts'
import { suggest } from '../../config/suggest.ts'
import { modelParams } from '../../sandbox/order.ts'
import { serverUrls } from '../../sandbox/provider-kinds.ts'
import type { ServerKind } from '../../sandbox/provider-kinds.ts'
import type { ModelSettings } from './contract.ts'
import { isOpenAI } from './dialects.ts'

const OLLAMA_WINDOW = 16_384
const providerName = /^[A-Za-z0-9_.-]{1,64}$/
const anAddress = 'an address such as https://api.openai.com/v1'

export default defineSettings<ModelSettings>({
	at: {
		providers: 'providers',
		default_provider: 'default_provider',
		fallback: 'fallback',
		transcription: 'transcription',
	},
	topic: 'Models',
	variables: {
		OPENAI_API_KEY: 'If the file has no provider, OpenAI becomes the default provider, with this key.',
		OPENAI_BASE_URL: 'With OPENAI_API_KEY: the address of a compatible server in place of OpenAI.',
		OPENAI_MODEL: 'With OPENAI_API_KEY: the model. Default `gpt-4o-mini`.',
	},
	schema: () =>
		allSettings<ModelSettings>({
			providers: joi
				.object()
				.pattern(providerName, provider())
				.max(32)
				.empty(null)
				.default({})
				.messages({ 'object.unknown': 'is not a name; use 1 to 64 of letters, digits, "-", "_" and "."' })
				.description('The model servers, by names that you choose. Default: the built-in offline provider.'),
			default_provider: joi
				.string()
				.max(64)
				.default(onlyProvider)
				.example('openai')
				.description(
					'The provider for agents that name none; required if there are several. Default: the only provider.',
				),
			fallback: list(
				joi.string().max(64).description('A name from providers.'),
				8,
				'Providers to try, in this order, when one fails.',
			)
				.unique()
				.example(['ollama']),
			transcription: joi
				.object({
					provider: joi
						.string()
						.max(64)
						.required()
						.example('openai')
						.description('A name from providers. Its server must offer /audio/transcriptions like OpenAI.'),
					model: joi.string().max(128).required().example('whisper-1').description('The model that transcribes.'),
				})
				.allow(null)
				.default(null)
				.description('Transcribes voice messages and other recordings. null: they are not transcribed. Default null.'),
		}),
	environment: providersFor,
	check({ providers, default_provider, fallback, transcription }) {
		const names = Object.keys(providers)
		const known = names.join(', ')
		const missing = (path: string, name: string) => {
			const meant = suggest(name, names)
			const message = `no such provider; there ${names.length === 1 ? 'is' : 'are'} ${known}${meant ? `; did you mean "${meant}"?` : '.'}`
			return { path, message }
		}
		const wrong = fallback.flatMap((name, at) => (names.includes(name) ? [] : missing(`fallback.${at}`, name)))
		if (transcription && !names.includes(transcription.provider))
			wrong.push(missing('transcription.provider', transcription.provider))
		else if (transcription && providers[transcription.provider]?.base_url === undefined)
			wrong.push({
				path: 'transcription.provider',
				message: `"${transcription.provider}" has no base_url; transcription needs the address of a server`,
			})
		if (default_provider === undefined) {
			const message = `is missing; with several providers it must name one of them: ${known}`
			return [{ path: 'default_provider', message, pointAt: 'providers' }, ...wrong]
		}
		return names.includes(default_provider) ? wrong : [missing('default_provider', default_provider), ...wrong]
	},
	banner({ providers, default_provider }, svc) {
		const { kind, model, base_url } = providers[default_provider] ?? {}
		if (kind !== undefined && kind !== 'offline') return [`Models: ${default_provider} (${model} at ${base_url})`]
		return [`Models: the built-in offline provider, without network; "${svc} init" sets up a real provider`]
	},
	examples: {
		providers: `# Without a provider, the gateway uses OpenAI if OPENAI_API_KEY is set, otherwise a built-in provider without network.
# You choose the names; an agent selects a provider with its config.provider.
#providers:
  #openai:
    #kind: openai-responses
    #base_url: https://api.openai.com/v1
    # From the environment, or from the vault: {secret: NAME}.
    #api_key: \${OPENAI_API_KEY}
    #model: gpt-4o-mini
    # For long-term memory; the default at api.openai.com. Elsewhere the default is the built-in embedder, which finds
    # similar wording but not similar meaning.
    #embedding_model: text-embedding-3-small
    # Seconds that one call may take.
    #timeout_s: 120
    # Settings of every call; an agent's config.params overrides them.
    #params:
      #reasoning_effort: low
  #anthropic:
    #kind: anthropic
    #api_key:
      #secret: ANTHROPIC_API_KEY
    #model: claude-sonnet-4-5
  #google:
    #kind: google
    #api_key:
      #secret: GEMINI_API_KEY
    #model: gemini-2.5-flash
  # Ollama on this machine. For other local servers, use kind openai with their base_url.
  #ollama:
    #kind: ollama
    #model: qwen3
    #context_window: 32768
  #offline:
    #kind: offline
`,
	},
})

/** The providers if the file configures none: the built-in one and, if its key is in the environment, OpenAI as the default. */
function providersFor(env: Environment, { providers, default_provider }: Readonly<Record<string, unknown>>) {
	const isSetUp = typeof providers !== 'object' || (providers !== null && Object.keys(providers).length > 0)
	if (isSetUp && providers !== undefined) return []
	const { OPENAI_API_KEY: key, OPENAI_MODEL: model, OPENAI_BASE_URL: base_url } = env
	const chosen = key ? 'openai' : 'offline'
	return [
		...(key
			? [
					{ path: 'providers.openai.kind', value: !base_url || isOpenAI(base_url) ? 'openai-responses' : 'openai' },
					{ path: 'providers.openai.api_key', value: key, variable: 'OPENAI_API_KEY' },
					{ path: 'providers.openai.model', value: model || 'gpt-4o-mini', variable: 'OPENAI_MODEL' },
				]
			: []),
		...(key && base_url ? [{ path: 'providers.openai.base_url', value: base_url, variable: 'OPENAI_BASE_URL' }] : []),
		{ path: 'providers.offline', value: { kind: 'offline' } },
		...((default_provider ?? null) === null ? [{ path: 'default_provider', value: chosen }] : []),
	]
}

function onlyProvider({ providers = {} }: { providers?: object }): string | undefined {
	const [first, ...others] = Object.keys(providers)
	return others.length === 0 ? first : undefined
}

/** The descriptions of the kinds, in the order of the reference. */
const servers: Record<ServerKind, string> = {
	openai: "A server with OpenAI's chat completions API: vLLM, LM Studio, llama.cpp and many more.",
	'openai-responses': "OpenAI's Responses API, which its reasoning models require for tools.",
	anthropic: "Anthropic's Messages API.",
	ollama: "Ollama's own API, in which requests set the context size.",
	google: "Google's Gemini API.",
}

function provider(): joi.AlternativesSchema {
	const common = commonFields()
	const kinds = [
		...Object.entries(servers).map(([kind, about]) => server(kind as ServerKind, about, common)),
		{
			is: 'offline',
			schema: ofKind('The built-in provider: deterministic, without network.', {
				kind: kindOf('offline').description('The API that the server speaks.'),
			}),
		},
	]
	const names = kinds.map(({ is }) => is)
	/** Checks only the kind, so that an unknown kind does not cause errors about its settings. */
	const unknown = joi
		.object({
			kind: kindOf(...names).messages({ 'any.required': `is missing; it must be one of ${names.join(', ')}` }),
		})
		.unknown()
	return joi.alternatives().conditional('.kind', {
		// oxlint-disable-next-line unicorn/no-thenable -- joi's name of the property; the object is never awaited
		switch: kinds.map(({ is, schema }) => ({ is, then: schema })),
		otherwise: unknown,
	})
}

function kindOf(...names: string[]): joi.StringSchema {
	return joi
		.string()
		.required()
		.valid(...names)
}

function server(
	is: ServerKind,
	about: string,
	{ api_key, model, prices, ...others }: ReturnType<typeof commonFields>,
): { is: string; schema: ObjectSchema } {
	const schema = ofKind(about, {
		kind: kindOf(is).description('The API that the server speaks.'),
		base_url: joi
			.string()
			.max(2048)
			.pattern(/^https?:\/\/\S+$/, anAddress)
			.custom(apiAddress)
			.default(serverUrls[is])
			.description(`Address of the API, with its version. Default ${serverUrls[is]}.`),
		api_key,
		model,
		...(is.startsWith('openai') && {
			embedding_model: joi
				.string()
				.max(256)
				.description(
					'Model that makes embeddings for long-term memory. Default text-embedding-3-small at api.openai.com, elsewhere none: then the built-in embedder is used.',
				),
		}),
		...others,
		context_window: contextWindow(is),
		prices,
		compat: compat(is),
	})
	return { is, schema }
}

/** The settings that all kinds of servers have. Built once per schema, since each start of the gateway builds the schema. */
function commonFields() {
	return {
		api_key: secretOr(
			joi
				.string()
				.empty('')
				.max(4096)
				.pattern(/^[\x21-\x7e]+$/, 'printable ASCII without spaces or line breaks'),
		).description(
			'Key of the API, preferably as a reference such as ${OPENAI_API_KEY} or {secret: NAME}. Omit it if the server requires none.',
		),
		model: joi
			.string()
			.max(256)
			.required()
			.messages({ 'any.required': 'is missing; give the name of a model that this server has' })
			.description('Model for agents that name none.'),
		timeout_s: count(1, 3600, 120, 'Seconds that one call may take.'),
		startup_timeout_s: whole(0, 3600).description(
			'Seconds that calls wait for a server that cannot be reached, for example while it starts. Has no effect if there is a fallback. Default 0.',
		),
		max_concurrent_calls: whole(1, 10_000).description(
			'Maximum number of concurrent model calls. Further calls wait, and agents take turns. Default: no limit.',
		),
		headers: map(
			headerName,
			secretOr(
				joi
					.string()
					.max(4096)
					.pattern(/^[\x20-\x7e]*$/, 'printable ASCII without line breaks'),
			).description('Its value, or {secret: NAME} for one from the vault. It replaces a header of the same name.'),
			'Headers of every request, such as api-key: {secret: NAME}.',
		),
		query: map(
			/^[\x21-\x7e]{1,64}$/,
			joi.string().max(1024).description('Its value.'),
			'Parameters of every request, such as api-version.',
		),
		extra_body: joi
			.object()
			.unknown()
			.empty(null)
			.max(64)
			.custom(plainBody)
			.description(
				'Additional fields of every request, such as chat_template_kwargs. They replace fields of the same name.',
			),
		params: modelParams(joi).empty(null).description('Settings of every call; those of an agent replace them.'),
		prices: map(
			/^[\x20-\x7e]{1,256}$/,
			joi
				.object({
					input: price('Price of the input.').required(),
					cached_input: price("Price of input that is read from the provider's cache. Default: as input."),
					output: price('Price of the output, reasoning included.').required(),
				})
				.description('The prices of that model.'),
			"Prices per million tokens, by the model's name, in a currency of your choice, the same for all providers. Without a price, the cost of a call is unknown.",
			256,
		),
	}
}

/** For Ollama it has a default: Ollama's own, often 4,096, would truncate longer requests without an error. */
function contextWindow(kind: ServerKind): joi.NumberSchema {
	const about = "The model's context window in tokens, answer included. An agent's config.context_window replaces it."
	const schema = whole(1024, 100_000_000)
	if (kind !== 'ollama') return schema.description(about)
	return schema.default(OLLAMA_WINDOW).description(`${about} Ollama loads the model with it. Default ${OLLAMA_WINDOW}.`)
}

/** The capabilities of a server. Those that are not set are detected when the server refuses a request. */
function compat(kind: ServerKind): ObjectSchema {
	const found = 'Default: detected.'
	return joi
		.object({
			...(kind === 'openai' && {
				max_tokens_field: joi
					.string()
					.valid('max_tokens', 'max_completion_tokens')
					.description(
						`Name of the field for the maximum length of an answer: max_tokens or max_completion_tokens. ${found}`,
					),
				stream_options: joi.boolean().description(`Whether the server accepts stream_options. ${found}`),
				developer_role: joi
					.boolean()
					.description('Whether the system prompt has the role developer in place of system. Default false.'),
			}),
			tools: joi.boolean().description(`Whether the server accepts tools; if not, the prompt describes them. ${found}`),
			streaming: joi.boolean().description(`Whether the server streams answers. ${found}`),
			images: joi
				.boolean()
				.description(`Whether the model accepts images; if not, it gets a line of text for each. ${found}`),
			files: joi.boolean().description(`Whether the model accepts documents such as PDF. ${found}`),
			audio: joi.boolean().description(`Whether the model accepts recordings. ${found}`),
		})
		.empty(null)
		.description('What the server can do.')
}

const headerName = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/

function map(names: RegExp, values: joi.Schema, description: string, max = 32): ObjectSchema {
	return joi.object().pattern(names, values).max(max).empty(null).description(description)
}

function whole(min: number, max: number): joi.NumberSchema {
	return joi.number().integer().min(min).max(max)
}

function price(description: string): joi.NumberSchema {
	return joi.number().min(0).max(1_000_000).description(description)
}

function secretOr(text: joi.Schema): joi.AlternativesSchema {
	return joi
		.alternatives(
			text,
			joi.object({
				secret: joi
					.string()
					.pattern(/^[A-Za-z0-9_.-]{1,128}$/, '1 to 128 of letters, digits, "-", "_" and "."')
					.required()
					.description('Name or id of the secret in the vault that contains it.'),
			}),
		)
		.messages({ 'alternatives.types': 'must be text, or secret: NAME for a secret of the vault' })
}

/** Fields that the gateway sets itself. */
const OWN_FIELDS = ['model', 'messages', 'input', 'contents', 'stream', 'tools']

function plainBody(value: object, helpers: CustomHelpers): unknown {
	const own = Object.keys(value).find((key) => OWN_FIELDS.includes(key))
	if (own !== undefined) return helpers.message({ custom: `must not contain "${own}", which the gateway sets itself` })
	if (JSON.stringify(value).length > 64 * 1024) return helpers.message({ custom: 'must be at most 64 KiB as JSON' })
	return value
}

/** Restores the message about unknown keys: that of `providers` is about the names of providers. */
function ofKind(description: string, keys: Record<string, joi.Schema>): ObjectSchema {
	return section(description, keys).messages({ 'object.unknown': messages['object.unknown'] ?? '' })
}

/** Validates a base URL: the SDK appends paths to it, and `fetch` refuses an address that contains a user. */
function apiAddress(text: string, helpers: CustomHelpers): unknown {
	const url = URL.parse(text)
	if (!url) return helpers.message({ custom: `must be ${anAddress}` })
	if (url.username || url.password) {
		return helpers.message({ custom: 'must not contain a user or password; put the key into api_key' })
	}
	if (url.search || url.hash) return helpers.message({ custom: 'must end with its path, without "?" or "#"' })
	return text.replace(/\/+$/, '')
}
