import type { ModelOrder } from '../../core/protocol.ts'
import type { AgentConfig } from '../agents/contract.ts'

/** A provider as gateway.yaml has it. */
export interface Provider {
	kind: 'openai' | 'offline'
	base_url?: string
	/** As it is, or where the vault has it. */
	api_key?: string | { secret: string }
	model?: string
	/** For long-term memory. */
	embedding_model?: string
	timeout_s?: number
}

/** Where embeddings of an agent's memories are made. */
export interface EmbeddingOrder {
	provider: string
	base_url: string
	/** Lives in memory only. */
	api_key?: string
	model: string
	timeout_ms: number
}

export interface ModelChoice {
	/** The agent's own model first, then its fallbacks; never empty. */
	orders: ModelOrder[]
	/** Set where the agent names a provider and none at all is set up, so that the offline one answers in its place. */
	instead_of?: string
}

export interface Models {
	/** Throws `provider_unknown`, saying what to set, where a named provider or a model's name is missing. */
	choose(config: AgentConfig): Promise<ModelChoice>
	/** Undefined where the agent's provider has no `embedding_model`: then the built-in embedder is meant. */
	embedder(config: AgentConfig): Promise<EmbeddingOrder | undefined>
}

declare module '../../core/plugin.ts' {
	interface Services {
		models: Models
	}
}
