import type { ModelOrder } from '../../core/protocol.ts'
import type { AgentConfig } from '../agents/contract.ts'

/** A provider as gateway.yaml has it. */
export interface Provider {
	kind: 'openai' | 'offline'
	base_url?: string
	api_key?: string
	model?: string
	timeout_s?: number
}

export interface ModelChoice {
	/** The agent's own model first, then its fallbacks; never empty. */
	orders: ModelOrder[]
	/** Set where the agent names a provider and none at all is set up, so that the offline one answers in its place. */
	instead_of?: string
}

export interface Models {
	/** Throws `provider_unknown`, saying what to set, where a named provider or a model's name is missing. */
	choose(config: AgentConfig): ModelChoice
}

declare module '../../core/plugin.ts' {
	interface Services {
		models: Models
	}
}
