import type { IncomingMessage } from 'node:http'
import type { AgentRef, ToolCall } from '../../core/plugin.ts'
import type { Deliver } from '../runs/contract.ts'

export interface WebhookSettings {
	/** Null: the address at which the gateway listens. */
	public_url: string | null
	max_per_agent: number
	max_body_kib: number
	/** Signed deliveries that one webhook accepts per minute. */
	per_minute: number
	/** Limit of concurrent deliveries and, separately, of request bodies being read. */
	max_concurrent: number
	max_concurrent_per_webhook: number
	retention_days: number
}

export const schemeNames = [
	'svc',
	'github',
	'gitlab',
	'standard-webhooks',
	'stripe',
	'slack',
	'shopify',
	'linear',
	'sentry',
	'gitea',
	'bitbucket',
	'custom',
] as const

/** How the sender of a webhook signs. */
export type SchemeName = (typeof schemeNames)[number]

/** Describes how a sender signs that no other scheme supports. */
export interface CustomScheme {
	/** The header with the signature. */
	header: string
	/** HMAC with this hash, or `token`: the header is the secret itself. Default `sha256`. */
	algorithm?: 'sha1' | 'sha256' | 'sha512' | 'token'
	/** Encoding of the digest. Default `hex`. */
	encoding?: 'hex' | 'base64'
	/** Prefix of the digest, such as `sha256=`. */
	prefix?: string
	/** Template of the signed text, with `{body}`, `{timestamp}` and `{id}`. Default `{body}`. */
	signed?: string
	/** The header with the time, in seconds or milliseconds since 1970. */
	timestamp_header?: string
	/** Seconds by which that time may differ from the gateway's. Default 300. */
	tolerance_s?: number
	/** The header with the id of the delivery. */
	id_header?: string
}

export interface Webhook {
	slug: string
	scheme: SchemeName
	custom?: CustomScheme
	/** The last part of the hook's address. */
	token: string
	/** What the agent should do with deliveries. */
	instructions?: string
	/** Where the answers of its runs go. */
	deliver: Deliver
	created_at: string
	last_delivery: string | null
	/** Accepted deliveries. */
	delivery_count: number
}

export interface WebhookRequest {
	slug: string
	/** Default `svc`. */
	scheme?: SchemeName
	/** With the scheme `custom`. */
	custom?: CustomScheme
	/** Set it if the sender creates the secret. Otherwise the gateway creates it. */
	secret?: string
	/** At most 10 KiB. */
	instructions?: string
	deliver?: Deliver
}

/** What a sender needs to use a webhook. The secret is shown only here. */
export interface NewWebhook {
	slug: string
	/** Where deliveries are sent. */
	url: string
	token: string
	/** The key of the signatures: these exact characters, not decoded. */
	secret: string
}

/** `secret_id`: the redactor's id of the secret, for callers that may show it. */
export interface GivenWebhook {
	webhook: NewWebhook
	secret_id: string
}

export interface WebhookDelivery {
	delivery_id: string
	webhook_slug: string
	source_ip: string
	signature_valid: boolean
	/** Null if it was not accepted. */
	run_id: string | null
	/** The status sent to the sender. */
	status_code: number
	/** Why it was refused; null if it was accepted. */
	error: string | null
	received_at: string
}

/** A call that may be repeated with the same `key`, and then returns the same token and secret. */
export type Repeatable = Pick<ToolCall, 'key' | 'emit'> & Partial<Pick<ToolCall, 'run_id'>>

export interface AcceptedDelivery {
	status: 'accepted'
	/** For a repeated delivery, the id of the first one. */
	delivery_id: string
}

/** The response to a sender that verifies the address. */
export interface Challenge {
	challenge: string
}

export interface TestedDelivery extends AcceptedDelivery {
	run_id: string
}

export interface Webhooks {
	/** Throws `invalid_request` for an invalid slug or `deliver`, `already_exists`, and `conflict` at the limit of webhooks. */
	register(agent: AgentRef, request: WebhookRequest, call?: Repeatable): Promise<GivenWebhook>
	/** Once it settles, the old token is unknown. Throws `not_found`. */
	rotate(agent: AgentRef, slug: string, call?: Repeatable): Promise<GivenWebhook>
	/** Replaces only the secret: some senders create it after they get the address. Throws `not_found`, `invalid_request`. */
	setSecret(agent: AgentRef, slug: string, secret: string): Promise<void>
	/** Oldest first. */
	list(agent: AgentRef): Promise<Webhook[]>
	/** Once it settles, the token is unknown. Throws `not_found`. */
	remove(agent: AgentRef, slug: string): Promise<void>
	/** Newest first, those after `before` if given. Throws `not_found`. */
	deliveries(agent: AgentRef, slug: string, options: { limit: number; before?: string }): Promise<WebhookDelivery[]>
	/**
	 * Accepts a delivery whose body was not read yet. Checks, in this order: the token (`not_found`), the rate
	 * (`rate_limited`, `unavailable`), the length (`payload_too_large`), the signature (`signature_invalid`), the body
	 * (`invalid_request`). Delivery and run are durable when it settles.
	 */
	receive(token: string, request: IncomingMessage): Promise<AcceptedDelivery | Challenge>
	/**
	 * Accepts a payload as a signed delivery with a new id: all limits apply, and it is counted and logged like any other.
	 * `source_ip`: of the caller. Throws as `receive` does, and `not_found` for the slug.
	 */
	test(agent: AgentRef, slug: string, payload: unknown, source_ip: string): Promise<TestedDelivery>
}

declare module '../../core/plugin.ts' {
	interface Services {
		webhooks: Webhooks
	}
}

export type WebhookCode = 'signature_invalid'

declare module '../../core/errors.ts' {
	interface ErrorCodes extends Record<WebhookCode, true> {}
}

declare module '../../config/types.ts' {
	interface Config {
		webhooks: WebhookSettings
	}
}
