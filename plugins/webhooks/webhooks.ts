/** The service: registers, rotates, lists and removes webhooks. */
import { defined } from '../../core/util/defined.ts'
import { Fault } from '../../core/errors.ts'
import { unguarded } from '../../core/events/families.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { agentScope } from '../../core/store/agent-scope.ts'
import { change, changeRecord } from '../../core/store/change.ts'
import type { Entry, Store } from '../../core/store/ports.ts'
import { namesOfOthers } from '../shared/names-of-others.ts'
import type { GivenWebhook, Repeatable, Webhook, Webhooks, WebhookSettings } from './contract.ts'
import { deliveriesOf, totalsOf } from './delivery-log.ts'
import { keys, sha256 } from './records.ts'
import type { Pointer, WebhookCount, WebhookRecord } from './records.ts'
import { secretId } from './secrets.ts'
import type { WebhookSecrets } from './secrets.ts'

/** The form of a webhook's slug. */
export const SLUG = /^[a-z0-9_-]{1,64}$/
export const SLUG_RULE = 'must be 1 to 64 of a-z 0-9 - _'

const none: WebhookCount = { count: 0 }

export function webhooksOf(ctx: Context<WebhookSettings>, secrets: WebhookSecrets): Omit<Webhooks, 'receive' | 'test'> {
	const { store, config, gateway, emit, use } = ctx

	const withUrl = ({ id, slug, token }: WebhookRecord, secret: string): GivenWebhook => {
		const base = (config.public_url ?? gateway.publicUrl() ?? '').replace(/\/+$/, '')
		return { webhook: { slug, url: `${base}/v1/hooks/${token}`, token, secret }, secret_id: secretId(id) }
	}
	/** The result of a repeated call, whose first response may have been lost. */
	const repeated = async (agent: AgentRef, record: WebhookRecord): Promise<GivenWebhook> =>
		withUrl(record, await secrets.textOf(agent.uid, record))

	/**
	 * Stores the pointer before the record, since a record without a pointer would be an unreachable webhook. The pointer of an old
	 * token stays until maintenance deletes it, so that its senders do not count as guessing tokens.
	 */
	const storePointer = async (agent: AgentRef, id: string, slug: string, token_hash: string): Promise<void> => {
		const pointer: Pointer = { agent: agent.name, uid: agent.uid, id, slug, at: now() }
		await store.put(keys.pointer(token_hash), pointer)
	}

	const announce = async (agent: AgentRef, type: string, slug: string, call?: Repeatable): Promise<void> => {
		const event = { event_type: type, payload: { slug } }
		if (call) unguarded(call.emit)(event)
		else await emit(event, agent.name)
	}

	return {
		async register(agent, { slug, scheme, custom, secret, instructions, deliver }, call) {
			if (!SLUG.test(slug)) throw new Fault('invalid_request', `slug ${SLUG_RULE}`)
			if ((scheme === 'custom') !== (custom !== undefined))
				throw new Fault(
					'invalid_request',
					'the field custom is required with the scheme custom, and allowed only with it',
				)
			const made_by = call ? sha256(call.key) : null
			const key = keys.webhook(agent.uid, slug)
			const earlier = (await store.get<WebhookRecord>(key))?.value
			if (earlier) {
				if (made_by === null || earlier.made_by !== made_by) throw taken(agent, slug)
				await announce(agent, 'webhook.registered', slug, call)
				return repeated(agent, earlier)
			}
			const destination = await use('runs').destination(agent, deliver, call?.run_id)
			secrets.mustHaveRoom()
			const id = newId()
			const made = await secrets.make(agent, { id, slug, ...defined({ scheme, secret }) })
			const record: WebhookRecord = {
				id,
				slug,
				...made.sealed,
				...defined({ scheme, custom, instructions }),
				made_by,
				destination,
				created_at: now(),
			}
			try {
				await storePointer(agent, id, slug, record.token_hash)
				await changeRecord<WebhookCount>(store, keys.ledger(agent.uid), async ({ count } = none) => {
					if (await store.get(key)) throw taken(agent, slug)
					if (count < config.max_per_agent)
						return { next: { count: count + 1 }, ops: [{ key, value: record, expect: null }], result: undefined }
					const limit = `agent "${agent.name}" has ${count} webhooks, which is the limit (webhooks.max_per_agent)`
					throw new Fault('conflict', `${limit}; delete one first`)
				})
			} catch (error) {
				secrets.retire(id)
				await store.delete(keys.pointer(record.token_hash))
				throw error
			}
			await announce(agent, 'webhook.registered', slug, call)
			return withUrl(record, made.secret)
		},
		async rotate(agent, slug, call) {
			const made_by = call ? sha256(call.key) : null
			const rotated = await change<GivenWebhook>(store, agentScope(agent.uid), async () => {
				const { key, value: before, rev } = await findWebhook(store, agent, slug)
				if (made_by !== null && before.made_by === made_by) return { result: await repeated(agent, before) }
				const { id, scheme } = before
				const made = await secrets.make(agent, { id, slug, ...(scheme && { scheme }) })
				await storePointer(agent, before.id, slug, made.sealed.token_hash)
				const record: WebhookRecord = { ...before, ...made.sealed, made_by }
				return { ops: [{ key, value: record, expect: rev }], result: withUrl(record, made.secret) }
			})
			await announce(agent, 'webhook.rotated', slug, call)
			return rotated
		},
		async setSecret(agent, slug, secret) {
			await change(store, agentScope(agent.uid), async () => {
				const { key, value, rev } = await findWebhook(store, agent, slug)
				const sealed = await secrets.seal(agent, value, secret)
				// `made_by` is cleared, so that a repeated call does not show this secret to the agent.
				const record: WebhookRecord = { ...value, secret: sealed, made_by: null }
				return { ops: [{ key, value: record, expect: rev }], result: undefined }
			})
			await announce(agent, 'webhook.rotated', slug)
		},
		async list(agent) {
			const found: Webhook[] = []
			for await (const { value } of store.list<WebhookRecord>(keys.webhooks(agent.uid))) {
				const { slug, scheme = 'svc', custom, token, created_at, id, instructions, destination } = value
				const { count, last } = await totalsOf(store, agent.uid, id)
				found.push({
					slug,
					scheme,
					...defined({ custom, instructions }),
					token,
					deliver: destination.deliver,
					created_at,
					last_delivery: last,
					delivery_count: count,
				})
			}
			return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
		},
		async remove(agent, slug) {
			const { id, token_hash } = await changeRecord<WebhookCount, WebhookRecord>(
				store,
				keys.ledger(agent.uid),
				async ({ count } = none) => {
					const { key, value, rev } = await findWebhook(store, agent, slug)
					return {
						next: { count: Math.max(0, count - 1) },
						ops: [{ key, value: undefined, expect: rev }],
						result: value,
					}
				},
			)
			secrets.retire(id)
			// Renews the pointer's time, so that maintenance waits for deliveries in flight.
			await storePointer(agent, id, slug, token_hash)
			return announce(agent, 'webhook.deleted', slug)
		},
		async deliveries(agent, slug, options) {
			const { value } = await findWebhook(store, agent, slug)
			return deliveriesOf(store, agent.uid, value.id, options)
		},
	}
}

/** Throws `not_found`, whose message lists the agent's webhooks. */
export async function findWebhook(store: Store, agent: AgentRef, slug: string): Promise<Entry<WebhookRecord>> {
	const entry = SLUG.test(slug) ? await store.get<WebhookRecord>(keys.webhook(agent.uid, slug)) : undefined
	if (entry) return entry
	const others = await namesOfOthers(store, keys.webhooks(agent.uid))
	throw new Fault('not_found', `agent "${agent.name}" has no webhook "${slug.slice(0, 64)}"; ${others}`)
}

function taken(agent: AgentRef, slug: string): Fault {
	const hint = {
		route: 'POST /v1/agents/{name}/webhooks/{slug}/rotate',
		params: { name: agent.name, slug },
		does: 'gives it a new token and secret',
		known_as: 'webhook.rotate', // the name for agents
	}
	return new Fault('already_exists', `agent "${agent.name}" has a webhook "${slug}" already`, { hint })
}
