/** What is kept of webhooks: all of it in the scope of their agent, but the pointers from tokens to webhooks. */
import { hash } from 'node:crypto'
import type { AgentRef } from '../../core/plugin.ts'
import type { Key } from '../../core/store/ports.ts'
import type { WebhookDelivery } from './contract.ts'

type Uid = AgentRef['uid']

export const scopeOf = (uid: Uid): string => `agent:${uid}`

/** `id` is a webhook's: one that is registered anew under an old slug finds nothing of the old one. */
export const keys = {
	webhook: (uid: Uid, slug: string): Key => [scopeOf(uid), 'webhook', slug],
	webhooks: (uid: Uid): Key => [scopeOf(uid), 'webhook'],
	ledger: (uid: Uid): Key => [scopeOf(uid), 'webhooks'],
	/** Ids of deliveries sort by time. */
	accepted: (uid: Uid, id: string, delivery: string): Key => [scopeOf(uid), 'webhook-accepted', id, delivery],
	allAccepted: (uid: Uid, id: string): Key => [scopeOf(uid), 'webhook-accepted', id],
	/** Deliveries that were refused, in a ring. */
	rejected: (uid: Uid, id: string, place: number): Key => [scopeOf(uid), 'webhook-rejected', id, String(place)],
	allRejected: (uid: Uid, id: string): Key => [scopeOf(uid), 'webhook-rejected', id],
	/** What a sender calls a delivery, hashed. */
	seen: (uid: Uid, id: string, name: string): Key => [scopeOf(uid), 'webhook-seen', id, name],
	allSeen: (uid: Uid, id: string): Key => [scopeOf(uid), 'webhook-seen', id],
	count: (uid: Uid, id: string, slot: number): Key => [scopeOf(uid), 'webhook-count', id, String(slot)],
	counts: (uid: Uid, id: string): Key => [scopeOf(uid), 'webhook-count', id],
	pruned: (uid: Uid, id: string): Key => [scopeOf(uid), 'webhook-pruned', id],
	/** By the hash of a token. One that leads to no webhook with that token means nothing. */
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
	/** Hash of the key of the call that made token and secret; null where it was no call. */
	made_by: string | null
	created_at: string
}

/** One for each agent; it changes with every webhook that comes or goes, so that the limit holds. */
export interface Ledger {
	count: number
}

export interface Pointer {
	agent: string
	uid: Uid
	id: string
	slug: string
	/** When its token was made, or no longer good because the webhook was deleted. */
	at: string
}

/**
 * Accepted deliveries. Whoever holds a slot is the only one who writes its counter, so that deliveries of one webhook do not
 * get in each other's way, and the sum over the slots is right all the same.
 */
export interface Counter {
	count: number
	last: string
}

export interface AcceptedRecord extends WebhookDelivery {
	/** The last part of the key of its `Seen`. */
	seen?: string
}

export interface Seen {
	delivery_id: string
}

/** How many accepted deliveries the log has forgotten. */
export interface Pruned {
	count: number
}

export function sha256(text: string): string {
	return hash('sha256', text, 'base64url')
}
