import type { AgentRef } from '../../core/plugin.ts'
import type { WebhookRecord } from './records.ts'

/** A webhook found by its token, whose agent exists. */
export interface Hook {
	agent: AgentRef
	webhook: WebhookRecord
}

/** A request that may be a delivery. */
export interface Arrival {
	hook: Hook
	/** The socket's address. */
	source_ip: string
	received_at: string
}
