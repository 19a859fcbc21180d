import { defined } from '../../core/util/defined.ts'
import { Fault, isFault, messageOf } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import type { ModelOrder } from '../../sandbox/order.ts'
import type { AgentConfig } from '../agents/contract.ts'
import type {} from '../vault/contract.ts'
import type { EndpointOrder, Models, ModelSettings, Provider, SecretText } from './contract.ts'
import { isKey, isOpenAI } from './dialects.ts'
import { slotsOf } from './slots.ts'

const OFFLINE = 'offline'
const TIMEOUT_S = 120
/** Default embedding model at OpenAI's own address. */
const OPENAI_EMBEDDINGS = 'text-embedding-3-small'
/** Names of headers and query parameters whose values are redacted even if the file contains them in plain text. */
const SECRET_NAME = /key|token|auth|secret|cookie|credential/i

export function modelsOf({
	config: settings,
	find,
	log,
	redactor,
	serving,
}: Pick<Context<ModelSettings>, 'config' | 'find' | 'log' | 'redactor'> & Partial<Pick<Context, 'serving'>>): Models {
	const { providers, default_provider, fallback, transcription } = settings
	const known = new Map(Object.entries(providers))
	const nothingSetUp = [...known.values()].every((provider) => provider.kind === 'offline')

	return {
		async choose(config) {
			const { provider } = config
			if (nothingSetUp && provider !== undefined && !known.has(provider)) {
				return { orders: [orderOf(OFFLINE, { kind: 'offline' }, config, true)], instead_of: provider }
			}
			const first = provider ?? default_provider
			const chain = [...new Set([first, ...(config.fallback ?? fallback)])]
			const orders = chain.map((name) => orderOf(name, providerOf(name), config, name === first))
			const keyed = await Promise.all(orders.map((order, at) => withSecrets(order, at > 0)))
			return { orders: keyed.filter((order) => order !== undefined) }
		},
		async embedder(config) {
			const name = config.provider ?? default_provider
			if (nothingSetUp) return undefined
			const provider = providerOf(name)
			const byDefault = provider.base_url && isOpenAI(provider.base_url) ? OPENAI_EMBEDDINGS : undefined
			return endpointOf(name, provider.embedding_model ?? byDefault)
		},
		slot: slotsOf(known, serving),
		async transcriber() {
			return transcription ? endpointOf(transcription.provider, transcription.model) : undefined
		},
	}

	async function endpointOf(name: string, model: string | undefined): Promise<EndpointOrder | undefined> {
		const provider = providerOf(name)
		const { base_url, timeout_s = TIMEOUT_S, query } = provider
		if (base_url === undefined || model === undefined) return undefined
		const order = { provider: name, base_url, model, timeout_ms: timeout_s * 1000 }
		return { ...order, ...(query && { query }), ...(await secretsOf(name, provider)) }
	}

	function providerOf(name: string): Provider {
		const provider = known.get(name)
		if (provider) return provider
		throw new Fault(
			'provider_unknown',
			`there is no provider "${name}"; add it under providers in gateway.yaml, or use one of: ${[...known.keys()].join(', ')}`,
		)
	}

	/** A fallback whose key is missing is omitted, since the first provider may answer. */
	async function withSecrets(order: ModelOrder, mayMiss: boolean): Promise<ModelOrder | undefined> {
		const provider = known.get(order.provider)
		try {
			return provider ? { ...order, ...(await secretsOf(order.provider, provider)) } : order
		} catch (error) {
			if (!mayMiss) throw error
			log.warn({ provider: order.provider }, `a fallback provider is omitted: ${messageOf(error)}`)
			return undefined
		}
	}

	async function secretsOf(
		name: string,
		{ api_key, headers, query = {} }: Provider,
	): Promise<Pick<ModelOrder, 'api_key' | 'headers'>> {
		const key = await valueOf(`providers.${name}.api_key`, api_key)
		if (key !== undefined) redact(name, `provider:${name}`, key)
		for (const [parameter, value] of Object.entries(query))
			if (SECRET_NAME.test(parameter)) redact(name, `provider:${name}:${parameter}`, value)
		if (!headers) return key === undefined ? {} : { api_key: key }
		const entries = Object.entries(headers).map(async ([header, setting]) => {
			const value = (await valueOf(`providers.${name}.headers.${header}`, setting)) ?? ''
			if (typeof setting !== 'string' || SECRET_NAME.test(header)) redact(name, `provider:${name}:${header}`, value)
			return [header, value] as const
		})
		return { ...(key !== undefined && { api_key: key }), headers: Object.fromEntries(await Promise.all(entries)) }
	}

	/** Redacts the value in runs that use the provider, and in the gateway's log. */
	function redact(provider: string, name: string, value: string): void {
		const secret = { id: name, name, value }
		redactor.add({ provider }, secret)
		redactor.add('gateway', secret)
	}

	/** No message repeats the secret's name, since the key itself may have been entered instead of its name. */
	async function valueOf(setting: string, key: SecretText | undefined): Promise<string | undefined> {
		if (key === undefined || typeof key === 'string') return key
		const vault = find('vault')
		if (!vault) {
			throw new Fault(
				'provider_unknown',
				`${setting} is a secret of the vault, which is not running; set plugins.vault to true, or give the key itself`,
			)
		}
		const value = await vault.open(key.secret).catch((error: unknown) => {
			if (!isFault(error, 'not_found')) throw error
			const message = `the vault has no secret with the name in ${setting}; store it with svc vault set or POST /v1/vault/secrets, or change the setting in gateway.yaml`
			throw new Fault('provider_unknown', message, { cause: error })
		})
		if (isKey(value)) return value
		throw new Fault(
			'provider_unknown',
			`the secret in ${setting} cannot be a key: a key is printable ASCII without spaces or line breaks; give it another value with svc vault set, or PUT /v1/vault/secrets/{id}`,
		)
	}
}

/** The order without secrets. The agent's `model` applies only to its own provider; a fallback uses its default model. */
function orderOf(name: string, provider: Provider, config: AgentConfig, isFirst: boolean): ModelOrder {
	const { kind } = provider
	const model = (isFirst ? config.model : undefined) ?? provider.model ?? (kind === 'offline' ? OFFLINE : undefined)
	if (model === undefined) {
		throw new Fault(
			'provider_unknown',
			`provider "${name}" has no model; set providers.${name}.model in gateway.yaml${isFirst ? ", or the agent's config.model" : ''}`,
		)
	}
	const { base_url, query, extra_body, compat, timeout_s = TIMEOUT_S, startup_timeout_s = 0 } = provider
	const context_window = config.context_window ?? provider.context_window
	const prices = Object.hasOwn(provider.prices ?? {}, model) ? provider.prices?.[model] : undefined
	return {
		provider: name,
		kind,
		model,
		timeout_ms: timeout_s * 1000,
		params: {
			...provider.params,
			...defined({ temperature: config.temperature, max_tokens: config.max_tokens }),
			...config.params,
		},
		...defined({ base_url, query, extra_body, compat, context_window, prices }),
		...(provider.max_concurrent_calls !== undefined && { needs_slot: true as const }),
		...(startup_timeout_s > 0 && { startup_timeout_ms: startup_timeout_s * 1000 }),
	}
}
