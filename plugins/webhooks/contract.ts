import type { IncomingMessage } from 'node:http'
import type { AgentRef, ToolCall } from '../../core/plugin.ts'

export interface WebhookSettings {
	/** Null: where the gateway listens. */
	public_url: string | null
	max_per_agent: number
	max_body_kib: number
	/** Deliveries with a valid signature that one webhook takes. */
	per_minute: number
	/** Of such deliveries; and, apart from them, of requests whose bodies are waited for. */
	max_concurrent: number
	max_concurrent_per_webhook: number
	retention_days: number
}

export interface Webhook {
	slug: string
	/** The last part of the hook's address. */
	token: string
	created_at: string
	last_delivery: string | null
	/** Accepted ones. */
	delivery_count: number
}

/** What a webhook is used with; the secret is given out this once. */
export interface NewWebhook {
	slug: string
	/** Where deliveries are sent. */
	url: string
	token: string
	/** The key of the signatures: these very characters, not decoded. */
	secret: string
}

/** `secret_id`: by which the redactor knows the secret, for whoever may show it. */
export interface GivenWebhook {
	webhook: NewWebhook
	secret_id: string
}

export interface WebhookDelivery {
	delivery_id: string
	webhook_slug: string
	source_ip: string
	signature_valid: boolean
	/** Null where it was not accepted. */
	run_id: string | null
	/** What the sender was answered. */
	status_code: number
	/** Why it was refused; null where it was not. */
	error: string | null
	received_at: string
}

/** A call that may be made again with the same `key`, and then gives the same token and secret. */
export type Repeatable = Pick<ToolCall, 'key' | 'emit'>

export interface Webhooks {
	/** Throws `invalid_request` for a slug that is none, `already_exists`, and `conflict` where there are as many as there may be. */
	register(agent: AgentRef, slug: string, call?: Repeatable): Promise<GivenWebhook>
	/** Its old token is unknown once it settles. Throws `not_found`. */
	rotate(agent: AgentRef, slug: string, call?: Repeatable): Promise<GivenWebhook>
	/** Oldest first. */
	list(agent: AgentRef): Promise<Webhook[]>
	/** Its token is unknown once it settles. Throws `not_found`. */
	remove(agent: AgentRef, slug: string): Promise<void>
	/** Newest first, those behind `before` where that is given. Throws `not_found`. */
	deliveries(agent: AgentRef, slug: string, options: { limit: number; before?: string }): Promise<WebhookDelivery[]>
}

export interface AcceptedDelivery {
	status: 'accepted'
	/** That of the first one, where the sender has sent it before. */
	delivery_id: string
}

export interface TestedDelivery extends AcceptedDelivery {
	run_id: string
}

/** What the plugin's own routes use. */
export interface WebhooksService extends Webhooks {
	/**
	 * Takes a delivery whose body is not read yet. Checks, in this order: the token (`not_found`), how many there are
	 * (`rate_limited`, `unavailable`), the length (`payload_too_large`), the signature (`signature_invalid`), the body
	 * (`invalid_request`). Delivery and run are durable when it settles.
	 */
	receive(token: string, request: IncomingMessage): Promise<AcceptedDelivery>
	/**
	 * Signs a payload with the webhook's own secret and takes it as a delivery of a new id: all limits hold, and it counts and
	 * is logged as any other. `source_ip`: of whoever asks for it. Throws as `receive` does, and `not_found` for the slug.
	 */
	test(agent: AgentRef, slug: string, payload: unknown, source_ip: string): Promise<TestedDelivery>
}

declare module '../../core/plugin.ts' {
	interface Services {
		webhooks: WebhooksService
	}
}
