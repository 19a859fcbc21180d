/** The records of webhooks, in the scope of their agent, except the pointers from tokens to webhooks. */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import type { Key } from '../../core/store/ports.ts'
import type { Destination } from '../runs/contract.ts'
import type { CustomScheme, SchemeName, WebhookDelivery } from './contract.ts'

type Uid = AgentRef['uid']

/** `id`: the webhook's, so that a new webhook with an old slug shares no records with the old one. */
export const keys = {
	webhook: (uid: Uid, slug: string): Key => [agentScope(uid), 'webhook', slug],
	webhooks: (uid: Uid): Key => [agentScope(uid), 'webhook'],
	ledger: (uid: Uid): Key => [agentScope(uid), 'webhooks'],
	/** Ids of deliveries sort by time. */
	accepted: (uid: Uid, id: string, delivery: string): Key => [agentScope(uid), 'webhook-accepted', id, delivery],
	allAccepted: (uid: Uid, id: string): Key => [agentScope(uid), 'webhook-accepted', id],
	/** Refused deliveries, in a ring buffer. */
	rejected: (uid: Uid, id: string, place: number): Key => [agentScope(uid), 'webhook-rejected', id, String(place)],
	allRejected: (uid: Uid, id: string): Key => [agentScope(uid), 'webhook-rejected', id],
	/** The sender's id of a delivery, hashed. */
	seen: (uid: Uid, id: string, name: string): Key => [agentScope(uid), 'webhook-seen', id, name],
	allSeen: (uid: Uid, id: string): Key => [agentScope(uid), 'webhook-seen', id],
	count: (uid: Uid, id: string, slot: number): Key => [agentScope(uid), 'webhook-count', id, String(slot)],
	counts: (uid: Uid, id: string): Key => [agentScope(uid), 'webhook-count', id],
	pruned: (uid: Uid, id: string): Key => [agentScope(uid), 'webhook-pruned', id],
	/** By the hash of a token. Ignored if the webhook no longer has that token. */
	pointer: (token_hash: string): Key => ['webhook', token_hash],
	pointers: (): Key => ['webhook'],
}

export interface WebhookRecord {
	id: string
	slug: string
	token: string
	token_hash: string
	/** The sealed secret. */
	secret: Uint8Array
	/** Absent: `svc`. */
	scheme?: SchemeName
	custom?: CustomScheme
	/** Hash of the idempotency key of the call that made token and secret; null if there was no call. */
	made_by: string | null
	/** For the model, with each delivery. */
	instructions?: string
	destination: Destination
	created_at: string
}

/** One per agent. Every commit that adds or removes a webhook updates it, which enforces the limit. */
export interface WebhookCount {
	count: number
}

export interface Pointer {
	agent: string
	uid: Uid
	id: string
	slug: string
	/** When its token was created, or became invalid because the webhook was deleted. */
	at: string
}

/**
 * Counts accepted deliveries of one slot. Only the holder of the slot writes it, so concurrent deliveries of a webhook do not
 * conflict. The sum over all slots is the total.
 */
export interface Counter {
	count: number
	last: string
}

export interface AcceptedRecord extends WebhookDelivery {
	/** The last part of the key of its `SeenDelivery`. */
	seen?: string
}

export interface SeenDelivery {
	delivery_id: string
}

/** Number of accepted deliveries deleted from the log. */
export interface Pruned {
	count: number
}

/** A webhook found by its token, whose agent exists. */
export interface Hook {
	agent: AgentRef
	webhook: WebhookRecord
}

/** A request whose signature is not verified yet. */
export interface Arrival {
	hook: Hook
	/** Remote address of the socket. */
	source_ip: string
	received_at: string
}

export function sha256(text: string): string {
	return hash('sha256', text, 'base64url')
}
