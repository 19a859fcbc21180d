import type { Compat, ModelOrder, ModelParams, Prices } from '../../sandbox/order.ts'
import type { ProviderKind } from '../../sandbox/provider-kinds.ts'
import type { AgentConfig } from '../agents/contract.ts'

/** A provider as in gateway.yaml. */
export interface Provider {
	kind: ProviderKind
	base_url?: string
	api_key?: SecretText
	model?: string
	/** For long-term memory. Default at OpenAI's own address: text-embedding-3-small. */
	embedding_model?: string
	timeout_s?: number
	startup_timeout_s?: number
	max_concurrent_calls?: number
	headers?: Record<string, SecretText>
	query?: Record<string, string>
	extra_body?: Record<string, unknown>
	params?: ModelParams
	context_window?: number
	/** By the model's name. */
	prices?: Readonly<Record<string, Prices>>
	compat?: Compat
}

/** A text, or the name or id of the vault's secret that contains it. */
export type SecretText = string | { secret: string }

export interface ModelSettings {
	/** By name. If the operator configured none: the built-in `offline`. */
	providers: Readonly<Record<string, Provider>>
	default_provider: string
	/** Tried in this order after a failed one, for agents without fallbacks of their own. */
	fallback: readonly string[]
	/** The model that transcribes recordings; null: none. */
	transcription: { provider: string; model: string } | null
}

/** A model server for embeddings or transcripts. */
export type EndpointOrder = Pick<ModelOrder, 'provider' | 'api_key' | 'headers' | 'query' | 'model' | 'timeout_ms'> & {
	base_url: string
}

export interface ModelChoice {
	/** The agent's own model first, then its fallbacks; never empty. */
	orders: ModelOrder[]
	/** Set if the agent names a provider and none is configured, so that the offline one answers instead. */
	instead_of?: string
}

export interface Models {
	/** Throws `provider_unknown`, with the setting to change, if a named provider or a model's name is missing. */
	choose(config: AgentConfig): Promise<ModelChoice>
	/** Undefined if the agent's provider has no `embedding_model`, and is not OpenAI itself: then the built-in embedder is used. */
	embedder(config: AgentConfig): Promise<EndpointOrder | undefined>
	/**
	 * Takes a slot for a call of the provider: waits while `max_concurrent_calls` are in progress. Slots are assigned to the owners,
	 * such as the uids of agents, in turn. `onWait` is called if the call must wait. Resolves to a function that releases the slot;
	 * calling it again has no effect. Throws the signal's reason.
	 */
	slot(provider: string, owner: string, signal: AbortSignal, onWait: () => void): Promise<() => void>
	/** Undefined if no transcription is configured. Throws `provider_unknown` if its key is missing. */
	transcriber(): Promise<EndpointOrder | undefined>
}

declare module '../../core/plugin.ts' {
	interface Services {
		models: Models
	}
}

declare module '../../config/types.ts' {
	// oxlint-disable-next-line typescript/no-empty-object-type -- its settings lie at the top of the file
	interface Config extends ModelSettings {}
}
