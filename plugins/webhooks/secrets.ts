/** Creates, seals and opens the secrets of webhooks, and has them redacted in their agents' output. */
import { createSecretKey, randomBytes } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { Fault, messageOf } from '../../core/errors.ts'
import { BoundedMap } from '../../core/util/bounded-map.ts'
import { randomText } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { SchemeName, WebhookSettings } from './contract.ts'
import { keys, sha256 } from './records.ts'
import type { Pointer, WebhookRecord } from './records.ts'
import { schemes } from './schemes.ts'

export type WebhookSecrets = ReturnType<typeof secretsOf>

/** Of a token and of a secret. The secret is hexadecimal, so that no tool mistakes it for an option or for base64. */
const BYTES = 32
export const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** Standard Webhooks requires 24, but some senders use fewer. */
const MIN_BYTES = 16
/** Limit of cached keys. */
const CACHE_LIMIT = 1_024
/** Limit of webhooks of all agents together. */
const WEBHOOK_LIMIT = 10_000

export const secretId = (id: string): string => `webhook:${id}`

export function secretsOf({ store, redactor, log, use }: Context<WebhookSettings>) {
	/** Keys, by the hash of the webhook's token. */
	const keyCache = new BoundedMap<string, { sealed: Uint8Array; key: KeyObject }>(CACHE_LIMIT)
	/** Ids of all webhooks. */
	const ids = new Set<string>()
	const redact = (agent: AgentRef, id: string, slug: string, value: string): void => {
		ids.add(id)
		redactor.add(agent, { id: secretId(id), name: `webhook:${slug}`, value })
	}
	/** Throws `vault_locked`. */
	const textOf = (uid: string, { id, token_hash, secret }: WebhookRecord): Promise<string> =>
		use('vault').unseal(secret, sealContext(uid, id, token_hash))

	/** Seals a secret of a webhook, for its record, and has it redacted. Throws `invalid_request`, `vault_locked`. */
	const seal = async (
		agent: AgentRef,
		{ id, slug, scheme, token_hash }: Pick<WebhookRecord, 'id' | 'slug' | 'scheme' | 'token_hash'>,
		secret: string,
	): Promise<Uint8Array> => {
		keyBytes(scheme, secret)
		const sealed = await use('vault').seal(secret, sealContext(agent.uid, id, token_hash))
		redact(agent, id, slug, secret)
		return sealed
	}

	return {
		/** A new token and secret for this webhook, unless its sender made the `secret`. Throws as `seal` does. */
		async make(
			agent: AgentRef,
			{ secret, ...webhook }: Pick<WebhookRecord, 'id' | 'slug' | 'scheme'> & { secret?: string },
		): Promise<{ secret: string; sealed: Pick<WebhookRecord, 'token' | 'token_hash' | 'secret'> }> {
			secret ??= newSecret(webhook.scheme)
			const token = randomText(BYTES)
			const token_hash = sha256(token)
			return { secret, sealed: { token, token_hash, secret: await seal(agent, { ...webhook, token_hash }, secret) } }
		},
		seal,
		textOf,
		/** The secret as a key for signatures; cached. */
		async keyOf(uid: string, webhook: WebhookRecord): Promise<KeyObject> {
			const { token_hash, secret: sealed, scheme } = webhook
			const cached = keyCache.get(token_hash)
			if (cached && Buffer.compare(cached.sealed, sealed) === 0) return cached.key
			const key = createSecretKey(keyBytes(scheme, await textOf(uid, webhook)))
			keyCache.set(token_hash, { sealed, key })
			return key
		},
		/** The webhook was deleted and no longer counts towards the limit. */
		retire(id: string): void {
			ids.delete(id)
		},
		/** Throws `conflict` if there are too many webhooks. */
		mustHaveRoom(): void {
			if (ids.size < WEBHOOK_LIMIT) return
			throw new Fault('conflict', `this gateway has ${ids.size} webhooks, which is the limit; delete one first`)
		},
		/** Adds all secrets to the redactor. Called at the start. */
		async redactAll(): Promise<void> {
			let failed = 0
			for await (const { value: pointer, key } of store.list<Pointer>(keys.pointers())) {
				const { agent, uid, slug } = pointer
				const webhook = (await store.get<WebhookRecord>(keys.webhook(uid, slug)))?.value
				if (!webhook || webhook.token_hash !== key.at(-1)) continue
				try {
					redact({ name: agent, uid }, webhook.id, slug, await textOf(uid, webhook))
				} catch (error) {
					if (failed++ === 0) log.error({ agent_id: agent, slug }, messageOf(error))
				}
			}
			if (failed > 0) log.error({ webhooks: failed }, 'webhooks whose secret cannot be decrypted accept no deliveries')
		},
	}
}

/** The bytes of a secret with which its sender signs. Throws `invalid_request`. */
function keyBytes(scheme: SchemeName | undefined, secret: string): Buffer {
	const { key } = scheme === 'custom' ? {} : schemes[scheme ?? 'svc']
	if (key !== 'base64') return Buffer.from(secret, 'utf8')
	const text = secret.replace(/^whsec_/, '')
	const bytes = Buffer.from(text, 'base64')
	if (bytes.length >= MIN_BYTES && bytes.toString('base64') === text) return bytes
	throw new Fault('invalid_request', `secret must be whsec_ and at least ${MIN_BYTES} bytes as base64`)
}

function newSecret(scheme: SchemeName | undefined): string {
	const bytes = randomBytes(BYTES)
	return scheme === 'standard-webhooks' ? `whsec_${bytes.toString('base64')}` : bytes.toString('hex')
}

/** The sealing context: a sealed secret can be opened only in its own record. */
function sealContext(uid: string, id: string, token_hash: string): string {
	return `webhook:${uid}:${id}:${token_hash}`
}
