/** The service: registering webhooks, rotating, listing and removing them. */
import { Fault, isFault } from '../../core/errors.ts'
import { newId, now } from '../../core/ids.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { Entry, Store } from '../../core/store/ports.ts'
import type {} from '../agents/contract.ts'
import type { GivenWebhook, Repeatable, Webhook, Webhooks, WebhookSettings } from './contract.ts'
import { deliveriesOf, totalsOf } from './delivery-log.ts'
import { addRecord, removeRecord } from './ledger.ts'
import { keys, sha256 } from './records.ts'
import type { Pointer, WebhookRecord } from './records.ts'
import { secretId } from './secrets.ts'
import type { Secrets } from './secrets.ts'

/** What a webhook may be called. */
export const SLUG = /^[a-z0-9_-]{1,64}$/
export const SLUG_RULE = 'must be 1 to 64 of a-z 0-9 - _'

export function webhooksOf(ctx: Context<WebhookSettings>, secrets: Secrets): Webhooks {
	const { store, config, redactor, gateway, emit } = ctx

	const entryOf = (agent: AgentRef, slug: string): Promise<Entry<WebhookRecord>> => findWebhook(store, agent, slug)

	const given = ({ id, slug, token }: WebhookRecord, secret: string): GivenWebhook => {
		const base = (config.public_url ?? gateway.url('main') ?? '').replace(/\/+$/, '')
		return { webhook: { slug, url: `${base}/v1/hooks/${token}`, token, secret }, secret_id: secretId(id) }
	}
	/** The call that made it is made again: its answer may have got lost. */
	const again = async (agent: AgentRef, record: WebhookRecord): Promise<GivenWebhook> =>
		given(record, await secrets.textOf(agent.uid, record))

	/**
	 * Before the record: a record without its pointer would be a webhook that nobody can reach. The pointer of a token that is
	 * no longer good stays until housekeeping finds it: its senders are not taken for strangers who try tokens.
	 */
	const point = async (agent: AgentRef, id: string, slug: string, token_hash: string): Promise<void> => {
		const pointer: Pointer = { agent: agent.name, uid: agent.uid, id, slug, at: now() }
		await store.put(keys.pointer(token_hash), pointer)
	}

	/** Records go without secrets, and these must keep the slug. */
	const mustBePlain = (slug: string): void => {
		if (redactor.text(slug, 'record') !== slug)
			throw new Fault('invalid_request', 'the slug holds a secret; register a webhook under another one')
	}

	const told = async (agent: AgentRef, type: string, slug: string, call?: Repeatable): Promise<void> => {
		const event = { event_type: type, payload: { slug } }
		if (call) call.emit(event)
		else await emit(event, agent.name)
	}

	return {
		async register(agent, slug, call) {
			if (!SLUG.test(slug)) throw new Fault('invalid_request', `slug ${SLUG_RULE}`)
			mustBePlain(slug)
			const made_by = call ? sha256(call.key) : null
			const isMine = (record: WebhookRecord): boolean => made_by !== null && record.made_by === made_by
			const earlier = await store.get<WebhookRecord>(keys.webhook(agent.uid, slug))
			if (earlier && !isMine(earlier.value)) throw taken(agent, slug)
			if (earlier) {
				await told(agent, 'webhook.registered', slug, call)
				return again(agent, earlier.value)
			}
			secrets.mustHaveRoom()
			const id = newId()
			const made = await secrets.make({ uid: agent.uid, id, slug })
			await point(agent, id, slug, made.sealed.token_hash)
			const record: WebhookRecord = { id, slug, ...made.sealed, made_by, created_at: now() }
			try {
				await addRecord(store, agent, record, config.max_per_agent)
				// The agent's record lies in another scope. One that is marked by now may have been swept already.
				if ((await ctx.use('agents').find(agent.name))?.uid !== agent.uid) {
					await store.delete(keys.webhook(agent.uid, slug))
					await store.delete(keys.ledger(agent.uid))
					throw new Fault('not_found', `agent "${agent.name}" was deleted meanwhile`)
				}
			} catch (error) {
				secrets.retire(id)
				await store.delete(keys.pointer(record.token_hash))
				throw isFault(error, 'conflict') && (await store.get(keys.webhook(agent.uid, slug)))
					? taken(agent, slug)
					: error
			}
			await told(agent, 'webhook.registered', slug, call)
			return given(record, made.secret)
		},
		async rotate(agent, slug, call) {
			const made_by = call ? sha256(call.key) : null
			for (;;) {
				const { key, value: before, rev } = await entryOf(agent, slug)
				if (made_by !== null && before.made_by === made_by) {
					await told(agent, 'webhook.rotated', slug, call)
					return again(agent, before)
				}
				mustBePlain(slug)
				const made = await secrets.make({ uid: agent.uid, id: before.id, slug })
				await point(agent, before.id, slug, made.sealed.token_hash)
				const record: WebhookRecord = { ...before, ...made.sealed, made_by }
				try {
					await store.update(key, record, rev)
				} catch (error) {
					await store.delete(keys.pointer(record.token_hash))
					if (isFault(error, 'conflict')) continue // removed or rotated meanwhile
					throw error
				}
				await told(agent, 'webhook.rotated', slug, call)
				return given(record, made.secret)
			}
		},
		async list(agent) {
			const found: Webhook[] = []
			for await (const { value } of store.list<WebhookRecord>(keys.webhooks(agent.uid))) {
				const { slug, token, created_at, id } = value
				const { count, last } = await totalsOf(store, agent.uid, id)
				found.push({ slug, token, created_at, last_delivery: last, delivery_count: count })
			}
			return found.toSorted((a, b) => (a.created_at < b.created_at ? -1 : 1))
		},
		async remove(agent, slug) {
			for (;;) {
				const entry = await entryOf(agent, slug)
				if (!(await removeRecord(store, agent, entry))) continue // rotated meanwhile
				const { id, token_hash } = entry.value
				secrets.retire(id)
				// Made anew, so that deliveries that are on their way have ended when housekeeping comes by.
				await point(agent, id, slug, token_hash)
				return told(agent, 'webhook.deleted', slug)
			}
		},
		async deliveries(agent, slug, options) {
			const { value } = await entryOf(agent, slug)
			return deliveriesOf(store, agent.uid, value.id, options)
		},
	}
}

/** Throws `not_found`, which says what the agent has. */
export async function findWebhook(store: Store, agent: AgentRef, slug: string): Promise<Entry<WebhookRecord>> {
	const entry = SLUG.test(slug) ? await store.get<WebhookRecord>(keys.webhook(agent.uid, slug)) : undefined
	if (entry) return entry
	const slugs: string[] = []
	for await (const { key } of store.list(keys.webhooks(agent.uid), { limit: 20 })) slugs.push(key.at(-1) ?? '')
	const others = slugs.length === 0 ? 'it has none' : `it has ${slugs.join(', ')}`
	throw new Fault('not_found', `agent "${agent.name}" has no webhook "${slug.slice(0, 64)}"; ${others}`)
}

function taken(agent: AgentRef, slug: string): Fault {
	return new Fault(
		'already_exists',
		`agent "${agent.name}" has a webhook "${slug}" already; webhook.rotate gives it a new token and secret`,
	)
}
