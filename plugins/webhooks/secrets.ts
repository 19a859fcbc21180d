/** Secrets of webhooks: made, sealed, opened; and the redactor knows each of them for as long as its webhook is there. */
import { createSecretKey, randomBytes } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { Fault, messageOf } from '../../core/errors.ts'
import { randomText } from '../../core/ids.ts'
import type { Context } from '../../core/plugin.ts'
import type {} from '../vault/contract.ts'
import type { WebhookSettings } from './contract.ts'
import { keys, sha256 } from './records.ts'
import type { Pointer, WebhookRecord } from './records.ts'

export interface Secrets {
	/** A new token and secret for the webhook of this id. Throws `vault_locked`. */
	make(webhook: { uid: string; id: string; slug: string }): Promise<Made>
	/** Throws `vault_locked`. */
	textOf(uid: string, webhook: WebhookRecord): Promise<string>
	/** The same as a key for signatures; kept for the next time. */
	keyOf(uid: string, webhook: WebhookRecord): Promise<KeyObject>
	/** The webhook is gone. What it signed with is looked for on, as `Redactor.retire` says. */
	retire(id: string): void
	/** Throws `conflict` where no more webhooks may be. */
	mustHaveRoom(): void
	/** After a restart: tells the redactor of all secrets. */
	announce(): Promise<void>
}

export interface Made {
	secret: string
	/** What of it the record keeps. */
	sealed: Pick<WebhookRecord, 'token' | 'token_hash' | 'secret'>
}

/** 256 bits each. The secret is hexadecimal: no tool takes it for an option or for base64. */
const BYTES = 32
export const TOKEN = /^[A-Za-z0-9_-]{43}$/
/** Keys that are kept open. */
const OPEN = 1_024
/** Webhooks of all agents together; the redactor looks for the secret of each. */
const WEBHOOKS = 10_000

export const secretId = (id: string): string => `webhook:${id}`

export function secretsOf({ store, redactor, log, use }: Context<WebhookSettings>): Secrets {
	const open = new Map<string, KeyObject>()
	const known = new Set<string>()
	const learn = (id: string, slug: string, value: string): void => {
		known.add(id)
		redactor.add({ id: secretId(id), name: `webhook:${slug}`, value })
	}
	const textOf = (uid: string, { id, token_hash, secret }: WebhookRecord): Promise<string> =>
		use('vault').unseal(secret, about(uid, id, token_hash))

	return {
		async make({ uid, id, slug }) {
			const secret = randomBytes(BYTES).toString('hex')
			const token = randomText(BYTES)
			const token_hash = sha256(token)
			const sealed = await use('vault').seal(secret, about(uid, id, token_hash))
			learn(id, slug, secret)
			return { secret, sealed: { token, token_hash, secret: sealed } }
		},
		textOf,
		async keyOf(uid, webhook) {
			const { token_hash } = webhook
			const before = open.get(token_hash)
			if (before) return before
			const key = createSecretKey(await textOf(uid, webhook), 'utf8')
			open.set(token_hash, key)
			const [oldest = ''] = open.keys()
			if (open.size > OPEN) open.delete(oldest)
			return key
		},
		retire(id) {
			if (known.delete(id)) redactor.retire(secretId(id))
		},
		mustHaveRoom() {
			if (known.size < WEBHOOKS) return
			throw new Fault('conflict', `this gateway has ${known.size} webhooks, as many as there may be; delete one first`)
		},
		async announce() {
			let closed = 0
			for await (const { value: pointer, key } of store.list<Pointer>(keys.pointers())) {
				const { uid, slug } = pointer
				const webhook = (await store.get<WebhookRecord>(keys.webhook(uid, slug)))?.value
				if (!webhook || webhook.token_hash !== key.at(-1)) continue
				try {
					learn(webhook.id, slug, await textOf(uid, webhook))
				} catch (error) {
					if (closed++ === 0) log.error({ agent_id: pointer.agent, slug }, messageOf(error))
				}
			}
			if (closed > 0) log.error({ webhooks: closed }, 'webhooks whose secret cannot be opened take no deliveries')
		},
	}
}

/** A sealed secret opens in its own record only. */
function about(uid: string, id: string, token_hash: string): string {
	return `webhook:${uid}:${id}:${token_hash}`
}
