import { Fault } from '../../core/errors.ts'
import type { ModelOrder } from '../../core/protocol.ts'
import type { AgentConfig } from '../agents/contract.ts'
import type { Models, Provider } from './contract.ts'

export interface ModelSettings {
	/** Holds the built-in `offline` where the operator set up none. */
	providers: Readonly<Record<string, Provider>>
	default_provider: string
	/** Tried in this order after the one that failed, for agents that name none of their own. */
	fallback: readonly string[]
}

const OFFLINE = 'offline'
const TIMEOUT_S = 120

export function modelsOf({ providers, default_provider, fallback }: ModelSettings): Models {
	const known = new Map(Object.entries(providers))
	const nothingSetUp = [...known.values()].every((provider) => provider.kind === 'offline')

	return {
		choose(config) {
			const { provider } = config
			if (nothingSetUp && provider !== undefined && !known.has(provider)) {
				return { orders: [orderOf(OFFLINE, { kind: 'offline' }, config, true)], instead_of: provider }
			}
			const first = provider ?? default_provider
			const chain = new Set([first, ...(config.fallback ?? fallback)])
			return { orders: [...chain].map((name) => orderOf(name, providerOf(name), config, name === first)) }
		},
	}

	function providerOf(name: string): Provider {
		const provider = known.get(name)
		if (provider) return provider
		throw new Fault(
			'provider_unknown',
			`there is no provider "${name}"; add it under providers in gateway.yaml, or use one of: ${[...known.keys()].join(', ')}`,
		)
	}
}

/** An agent's model is meant for its own provider; a fallback answers with the model that is its own. */
function orderOf(name: string, provider: Provider, config: AgentConfig, isFirst: boolean): ModelOrder {
	const { kind } = provider
	const model = (isFirst ? config.model : undefined) ?? provider.model ?? (kind === 'offline' ? OFFLINE : undefined)
	if (model === undefined) {
		throw new Fault(
			'provider_unknown',
			`provider "${name}" has no model; set providers.${name}.model in gateway.yaml${isFirst ? ", or the agent's config.model" : ''}`,
		)
	}
	return {
		provider: name,
		kind,
		model,
		timeout_ms: (provider.timeout_s ?? TIMEOUT_S) * 1000,
		...(provider.base_url !== undefined && { base_url: provider.base_url }),
		...(provider.api_key !== undefined && { api_key: provider.api_key }),
		...(config.temperature !== undefined && { temperature: config.temperature }),
		...(config.max_tokens !== undefined && { max_tokens: config.max_tokens }),
	}
}
