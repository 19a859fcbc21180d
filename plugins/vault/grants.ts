/**
 * Records which agent may read which secret. A grant refers to the agent's uid and the secret's id, so it becomes void when either
 * is deleted, even if the name is reused. Grants are stored in the vault's scope, so a commit cannot check that the agent exists.
 * Void grants are removed after the event `agent.deleted`, and at the start.
 */
import { Fault, isFault } from '../../core/errors.ts'
import { newId, now } from '../../core/util/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Entry, Key, Op } from '../../core/store/ports.ts'
import type {} from '../agents/contract.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { invalidField } from '../shared/invalid-field.ts'
import { mac } from './cipher.ts'
import type { Grant, Grants } from './contract.ts'
import { roomBelow } from './services.ts'
import type { VaultServices } from './services.ts'
import { SCOPE, keys } from './keys.ts'
import type { OpenSecret } from './secret-record.ts'

/** Stored under the agent's uid and the secret's id. */
interface GrantRecord extends Omit<Grant, 'secret_id'> {
	/** A MAC, so that writing to the database without the vault's key cannot create a grant. */
	mark: Uint8Array
}

/** An agent whose grant was revoked after the secret had been read. Stored under the same ids. */
type FormerHolder = Pick<Grant, 'agent_id'>

/** A grant whose MAC is valid. */
interface CheckedGrant extends Grant {
	agent_uid: string
}

/** An agent that may have seen a secret. */
export interface Holder extends AgentRef {
	/** When the agent got the grant; absent: unknown. */
	since?: string
}

export interface GrantStore extends Grants {
	of(agent: AgentRef, secret_id: string): Promise<Grant | undefined>
	/** Ids of the secrets that the agent's model may see. */
	revealed(agent: AgentRef): Promise<ReadonlySet<string>>
	/** The agents with a grant, by the id of the secret. */
	holders(): Promise<Map<string, Holder[]>>
	/** The agents whose grant was revoked after the secret had been read, by the id of the secret. They may still repeat the value. */
	formerHolders(): Promise<Map<string, Holder[]>>
	/** Removes the grants of a deleted agent. */
	forgetAgent(agent_uid: string): Promise<void>
	/** Removes the grants of a deleted secret; call it within a task of the queue. Returns their number. */
	forgetSecret(secret_id: string): Promise<number>
	/** Removes grants whose agent or secret was deleted while the vault was not running. */
	sweep(): Promise<void>
}

const GRANT_LIMIT = 10_000
const FORMER_LIMIT = 10_000
/** Grants per commit: each takes two writes, and a commit is limited to 100. */
const SWEEP_LIMIT = 50
/** Limit of agents whose revealed secrets are cached. */
const CACHE_LIMIT = 10_000

export function grantsOf(
	{ ctx, ring, queue, emit }: VaultServices,
	findSecret: (ref: string) => Promise<OpenSecret | undefined>,
): GrantStore {
	const { store, log } = ctx
	const agents = () => ctx.use('agents')
	const hasRoom = roomBelow(GRANT_LIMIT, () => store.list(keys.grantIds))
	const hasRoomForFormer = roomBelow(FORMER_LIMIT, () => store.list(keys.formers))

	const revealedTo = new Map<string, ReadonlySet<string>>()
	let changes = 0
	const stop = store.watch(keys.grants, ({ key }) => {
		changes++
		revealedTo.delete(key[2] as string)
	})
	ctx.defer(stop, 'watcher of grants')

	/** Undefined if the MAC is wrong, so that the vault did not write the record. */
	const checked = ({ key, value }: Entry<GrantRecord>): CheckedGrant | undefined => {
		const [, , agent_uid, secret_id] = key as unknown as [string, string, string, string]
		const { mark, ...rest } = value
		const grant = { ...rest, agent_uid, secret_id }
		if (markOf(grant).equals(mark)) return grant
		log.error({ agent: value.agent_id, secret_id }, 'a grant was changed outside the gateway, and is ignored')
		return undefined
	}
	const markOf = ({ grant_id, agent_id, agent_uid, secret_id, reveal, hosts, created_at }: CheckedGrant) =>
		mac(ring().index, [
			'grant',
			grant_id,
			agent_id,
			agent_uid,
			secret_id,
			String(reveal),
			created_at,
			...(hosts ? [JSON.stringify(hosts)] : []), // absent in 0.1.0, whose MACs are still valid
		])

	const remove = async (entries: Entry<GrantRecord>[]): Promise<void> => {
		for (let at = 0; at < entries.length; at += SWEEP_LIMIT)
			await store.commit(SCOPE, entries.slice(at, at + SWEEP_LIMIT).flatMap(removalOf))
	}
	const collect = async (
		wanted: (entry: Entry<GrantRecord>) => boolean | Promise<boolean>,
		agent_uid?: string,
	): Promise<Entry<GrantRecord>[]> => {
		const prefix: Key = agent_uid === undefined ? keys.grants : keys.grantsOf(agent_uid)
		const found: Entry<GrantRecord>[] = []
		for await (const entry of store.list<GrantRecord>(prefix)) if (await wanted(entry)) found.push(entry)
		return found
	}
	const isVoid = async ({ key, value }: Entry<FormerHolder>): Promise<boolean> => {
		const [, , agent_uid, secret_id] = key as unknown as [string, string, string, string]
		return (await agents().find(value.agent_id))?.uid !== agent_uid || !(await store.get(keys.secret(secret_id)))
	}
	/** The write that remembers the holder of a grant to be revoked, if the secret was read, or cannot be decrypted to find out. */
	const formerHolderOps = async ({ key, value: { agent_id } }: Entry<GrantRecord>): Promise<Op[]> => {
		const [, , agent_uid, secret_id] = key as unknown as [string, string, string, string]
		const wasRead = await findSecret(secret_id).then(
			(secret) => secret?.about.was_read === true,
			() => true,
		)
		const former = keys.former(agent_uid, secret_id)
		const isNew = wasRead && !(await store.get(former)) && (await hasRoomForFormer())
		return isNew ? [{ key: former, value: { agent_id } satisfies FormerHolder }] : []
	}

	return {
		async create({ agent_id, secret: ref, reveal, hosts }) {
			if (hosts && reveal) {
				const message = 'hosts cannot be given with reveal: a model that sees the value can send it anywhere'
				throw invalidField('hosts', message)
			}
			const { grant, secret } = await queue.run(async () => {
				const [agent, secret] = [await agents().get(agent_id), await findSecret(ref)]
				if (!secret) {
					const hint = { route: 'POST /v1/vault/secrets', does: 'stores one' }
					throw new Fault('not_found', `there is no secret "${ref}"`, { hint })
				}
				const key = keys.grant(agent.uid, secret.id)
				const earlier = await store.get<GrantRecord>(key)
				if (earlier) {
					const { grant_id } = earlier.value
					throw new Fault(
						'already_exists',
						`agent "${agent_id}" already has a grant for this secret, ${grant_id}; to change it, revoke that grant first`,
						{ hint: { route: 'DELETE /v1/vault/grants/{grant_id}', params: { grant_id }, does: 'revokes it' } },
					)
				}
				if (!(await hasRoom()))
					throw new Fault(
						'conflict',
						`there are already ${GRANT_LIMIT} grants, which is the limit; revoke some that are no longer needed`,
					)
				const grant: Grant = {
					grant_id: newId(),
					agent_id,
					secret_id: secret.id,
					reveal,
					...(hosts && { hosts }),
					created_at: now(),
				}
				const { secret_id, ...rest } = grant
				const record: GrantRecord = { ...rest, mark: markOf({ ...grant, agent_uid: agent.uid }) }
				await store.commit(SCOPE, [
					{ key, value: record, expect: null },
					{ key: keys.grantId(grant.grant_id), value: { agent_uid: agent.uid, secret_id }, expect: null },
				])
				return { grant, secret: secret.about.name }
			})
			const { grant_id, secret_id } = grant
			await emit('vault.granted', { grant_id, secret_id, secret, reveal, ...(hosts && { hosts }) }, agent_id)
			return grant
		},
		async remove(grant_id) {
			const { secret_id, agent_id } = await queue.run(async () => {
				const place = await store.get<{ agent_uid: string; secret_id: string }>(keys.grantId(grant_id))
				const key = place && keys.grant(place.value.agent_uid, place.value.secret_id)
				const entry = key && (await store.get<GrantRecord>(key))
				if (entry?.value.grant_id !== grant_id)
					throw new Fault('not_found', `there is no grant "${grant_id}"`, {
						hint: { route: 'GET /v1/vault/grants', does: 'lists them' },
					})
				const removal = removalOf(entry)
				const formerHolder = await formerHolderOps(entry)
				await store.commit(SCOPE, [...removal, ...formerHolder]).catch((error: unknown) => {
					// A grant must be revocable even if the disk is full, and then only deletions are accepted.
					if (formerHolder.length === 0 || !isFault(error, 'storage_full')) throw error
					return store.commit(SCOPE, removal)
				})
				return { secret_id: key?.[3], agent_id: entry.value.agent_id }
			})
			await emit('vault.revoked', { grant_id, secret_id }, agent_id)
		},
		async list(agent_id) {
			const agent = agent_id === undefined ? undefined : await agents().find(agent_id)
			if (agent_id !== undefined && !agent) return []
			const entries = await collect(async (entry) => !(await isVoid(entry)), agent?.uid)
			const grants = entries.flatMap((entry) => checked(entry) ?? [])
			return grants.map(view).toSorted((a, b) => (a.grant_id < b.grant_id ? -1 : 1))
		},
		async of({ uid }, secret_id) {
			const entry = await store.get<GrantRecord>(keys.grant(uid, secret_id))
			return entry && checked(entry)
		},
		async revealed({ uid }) {
			const known = revealedTo.get(uid)
			if (known) return known
			const before = changes
			const entries = await collect(({ value }) => value.reveal, uid)
			const ids = new Set(entries.flatMap((entry) => checked(entry)?.secret_id ?? []))
			// After a change during this read, the result may be outdated: it is not cached.
			if (before === changes && revealedTo.size < CACHE_LIMIT) revealedTo.set(uid, ids)
			return ids
		},
		async holders() {
			const valid = (await collect(() => true)).flatMap((entry) => checked(entry) ?? [])
			const bySecret = Map.groupBy(valid, ({ secret_id }) => secret_id)
			const agentOf = ({ agent_id, agent_uid, created_at }: CheckedGrant): Holder => ({
				name: agent_id,
				uid: agent_uid,
				since: created_at,
			})
			return new Map(Array.from(bySecret, ([id, grants]) => [id, grants.map(agentOf)]))
		},
		async formerHolders() {
			const formers = await Array.fromAsync(store.list<FormerHolder>(keys.formers))
			const bySecret = Map.groupBy(formers, ({ key }) => key[3] ?? '')
			const agentOf = ({ key, value }: Entry<FormerHolder>): AgentRef => ({ name: value.agent_id, uid: key[2] ?? '' })
			return new Map(Array.from(bySecret, ([id, entries]) => [id, entries.map(agentOf)]))
		},
		forgetAgent(agent_uid) {
			ctx.redactor.forget(agent_uid)
			return queue.run(async () => {
				await remove(await collect(() => true, agent_uid))
				await deleteAll(store, keys.formersOf(agent_uid))
			})
		},
		async forgetSecret(secret_id) {
			const entries = await collect(({ key }) => key[3] === secret_id)
			await remove(entries)
			await deleteAll(store, keys.formers, ({ key }) => key[3] === secret_id)
			return entries.length
		},
		sweep: () =>
			queue.run(async () => {
				await remove(await collect(isVoid))
				await deleteAll(store, keys.formers, (entry) => isVoid(entry as Entry<FormerHolder>))
			}),
	}
}

function removalOf({ key, value }: Entry<GrantRecord>): Op[] {
	return [
		{ key, value: undefined },
		{ key: keys.grantId(value.grant_id), value: undefined },
	]
}

function view({ grant_id, agent_id, secret_id, reveal, hosts, created_at }: Grant): Grant {
	return { grant_id, agent_id, secret_id, reveal, ...(hosts && { hosts }), created_at }
}
