/** How senders sign their deliveries, according to their documentation. */
import { defined } from '../../core/util/defined.ts'
import type { CustomScheme, SchemeName } from './contract.ts'

export interface Scheme {
	/** At least one header must be present, and every present one must be valid. */
	signatures: readonly SignatureRule[]
	/** Headers with the sender's id of the delivery; the first present one is used. */
	ids: readonly string[]
	/** The payload field with that id, which the signature covers. */
	id_field?: string
	/** The payload field with the time, in milliseconds since 1970. */
	time_field?: string
	/** The header with the event type. */
	event?: string
	/** The payload may be an HTML form. */
	forms?: true
	/** The sender verifies the address with a challenge. */
	challenge?: true
	/** The sender always creates the secret. */
	sender_makes_secret?: true
	/** The secret is base64 after `whsec_`; otherwise its text is the key. */
	key?: 'base64'
	/** Seconds by which a time may differ from the gateway's. Default `TOLERANCE_S`. */
	tolerance_s?: number
}

export interface SignatureRule {
	header: string
	/**
	 * `plain`: the prefix, then the digest. `versions`: several `v1,DIGEST` with spaces between. `fields`: `t=TIME,v1=DIGEST`.
	 * `token`: the secret itself.
	 */
	read: 'plain' | 'versions' | 'fields' | 'token'
	prefix?: string
	algorithm?: 'sha1' | 'sha256' | 'sha512'
	encoding?: 'hex' | 'base64'
	/** Template of the signed text, with `{id}`, `{timestamp}` and `{body}`. Default: the body. */
	signed?: string
	/** The header with the time, in seconds since 1970. */
	time?: string
	/** The header with the signed id. */
	id?: string
}

/** Seconds; what most senders recommend. */
export const TOLERANCE_S = 300

const standard = (prefix: string): SignatureRule => ({
	header: `${prefix}-Signature`,
	read: 'versions',
	encoding: 'base64',
	signed: '{id}.{timestamp}.{body}',
	time: `${prefix}-Timestamp`,
	id: `${prefix}-Id`,
})

export const schemes: Readonly<Record<Exclude<SchemeName, 'custom'>, Scheme>> = {
	svc: {
		signatures: [
			{ header: 'X-Signature', read: 'plain', prefix: 'sha256=' },
			{ header: 'X-Hub-Signature-256', read: 'plain', prefix: 'sha256=' },
		],
		ids: ['X-Delivery-Id', 'X-GitHub-Delivery', 'Webhook-Id'],
		event: 'X-GitHub-Event',
	},
	github: {
		signatures: [{ header: 'X-Hub-Signature-256', read: 'plain', prefix: 'sha256=' }],
		ids: ['X-GitHub-Delivery'],
		event: 'X-GitHub-Event',
		forms: true,
	},
	gitlab: {
		signatures: [{ header: 'X-Gitlab-Token', read: 'token' }],
		ids: ['Idempotency-Key', 'X-Gitlab-Event-UUID'],
		event: 'X-Gitlab-Event',
	},
	'standard-webhooks': {
		signatures: [standard('Webhook'), standard('Svix')],
		ids: ['Webhook-Id', 'Svix-Id'],
		key: 'base64',
	},
	stripe: {
		signatures: [{ header: 'Stripe-Signature', read: 'fields', signed: '{timestamp}.{body}' }],
		ids: [],
		id_field: 'id',
		sender_makes_secret: true,
	},
	slack: {
		signatures: [
			{
				header: 'X-Slack-Signature',
				read: 'plain',
				prefix: 'v0=',
				signed: 'v0:{timestamp}:{body}',
				time: 'X-Slack-Request-Timestamp',
			},
		],
		ids: [],
		id_field: 'event_id',
		forms: true,
		challenge: true,
		sender_makes_secret: true,
	},
	shopify: {
		signatures: [{ header: 'X-Shopify-Hmac-Sha256', read: 'plain', encoding: 'base64' }],
		ids: ['X-Shopify-Webhook-Id'],
		event: 'X-Shopify-Topic',
		sender_makes_secret: true,
	},
	linear: {
		signatures: [{ header: 'Linear-Signature', read: 'plain' }],
		ids: ['Linear-Delivery'],
		time_field: 'webhookTimestamp',
		event: 'Linear-Event',
		sender_makes_secret: true,
	},
	sentry: {
		signatures: [{ header: 'Sentry-Hook-Signature', read: 'plain' }],
		ids: ['Request-ID'],
		event: 'Sentry-Hook-Resource',
		sender_makes_secret: true,
	},
	gitea: {
		signatures: [
			{ header: 'X-Gitea-Signature', read: 'plain' },
			{ header: 'X-Forgejo-Signature', read: 'plain' },
		],
		ids: ['X-Gitea-Delivery', 'X-Forgejo-Delivery'],
		event: 'X-Gitea-Event',
	},
	bitbucket: {
		signatures: [{ header: 'X-Hub-Signature', read: 'plain', prefix: 'sha256=' }],
		ids: ['X-Request-UUID', 'X-Request-Id'],
		event: 'X-Event-Key',
	},
}

export function schemeOf({ scheme = 'svc', custom }: { scheme?: SchemeName; custom?: CustomScheme }): Scheme {
	return scheme === 'custom' ? customScheme(custom ?? { header: 'X-Signature' }) : schemes[scheme]
}

function customScheme(given: CustomScheme): Scheme {
	const { header, algorithm = 'sha256', encoding, prefix, signed, timestamp_header, tolerance_s, id_header } = given
	const rule: SignatureRule = {
		header,
		read: algorithm === 'token' ? 'token' : 'plain',
		...(algorithm !== 'token' && { algorithm }),
		...defined({ encoding, prefix, signed, time: timestamp_header, id: id_header }),
	}
	return { signatures: [rule], ids: id_header === undefined ? [] : [id_header], ...defined({ tolerance_s }) }
}
