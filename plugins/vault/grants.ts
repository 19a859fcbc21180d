/**
 * Which agent may read which secret. A grant belongs to the agent's uid and the secret's id, so it is void as soon as one
 * of the two is gone, whoever comes under the same name later; void ones are swept.
 */
import { Fault } from '../../core/errors.ts'
import { newId, now } from '../../core/ids.ts'
import type { AgentRef } from '../../core/plugin.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type {} from '../agents/contract.ts'
import { mac } from './cipher.ts'
import type { Grant, Grants } from './contract.ts'
import { boundOf } from './desk.ts'
import type { Desk } from './desk.ts'
import { SCOPE, keys } from './keys.ts'
import type { OpenSecret } from './secret-record.ts'

/** Under the agent's uid and the secret's id. */
interface GrantRecord extends Omit<Grant, 'secret_id'> {
	/** Without the vault's key nobody can make one, such as by writing to the database. */
	mark: Uint8Array
}

export interface GrantStore extends Grants {
	of(agent: AgentRef, secret_id: string): Promise<Grant | undefined>
	/** Ids of the secrets that the agent's model may see. */
	revealed(agent: AgentRef): Promise<ReadonlySet<string>>
	/** Removes those of an agent that is gone. */
	forgetAgent(agent_uid: string): Promise<void>
	/** Removes those of a secret that is gone, in the midst of a change that has its turn. Answers how many there were. */
	forgetSecret(secret_id: string): Promise<number>
	/** Removes those whose agent or secret went while nobody took note. */
	sweep(): Promise<void>
}

const GRANT_LIMIT = 10_000
/** Two writes each, and a commit takes 100. */
const SWEEP_LIMIT = 50
/** Agents whose revealed secrets are remembered. */
const CACHE_LIMIT = 10_000

export function grantsOf(
	{ ctx, ring, inTurn, tell }: Desk,
	findSecret: (ref: string) => Promise<OpenSecret | undefined>,
): GrantStore {
	const { store, log } = ctx
	const agents = () => ctx.use('agents')
	const hasRoom = boundOf(GRANT_LIMIT, () => store.list(keys.grantIds))

	const revealedTo = new Map<string, ReadonlySet<string>>()
	let changes = 0
	const stop = store.watch(keys.grants, ({ key }) => {
		changes++
		revealedTo.delete(key[2] as string)
	})
	ctx.defer(stop, 'following the grants')

	/** Undefined where it was not the vault that wrote it. */
	const checked = ({ key, value }: Entry<GrantRecord>): (Grant & { agent_uid: string }) | undefined => {
		const [, , agent_uid, secret_id] = key as unknown as [string, string, string, string]
		const { mark, ...rest } = value
		const grant = { ...rest, agent_uid, secret_id }
		if (markOf(grant).equals(mark)) return grant
		log.error({ agent: value.agent_id, secret_id }, 'a grant was changed outside the gateway; it does not count')
		return undefined
	}
	const markOf = ({ grant_id, agent_id, agent_uid, secret_id, reveal, created_at }: Grant & { agent_uid: string }) =>
		mac(ring().index, ['grant', grant_id, agent_id, agent_uid, secret_id, String(reveal), created_at])

	const remove = async (entries: Entry<GrantRecord>[]): Promise<void> => {
		for (let at = 0; at < entries.length; at += SWEEP_LIMIT) {
			const ops = entries.slice(at, at + SWEEP_LIMIT).flatMap(({ key, value }): Op[] => [
				{ key, value: undefined },
				{ key: keys.grantId(value.grant_id), value: undefined },
			])
			await store.commit(SCOPE, ops)
		}
	}
	const collect = async (
		wanted: (entry: Entry<GrantRecord>) => boolean | Promise<boolean>,
		agent_uid?: string,
	): Promise<Entry<GrantRecord>[]> => {
		const found: Entry<GrantRecord>[] = []
		const prefix = agent_uid === undefined ? keys.grants : keys.grantsOf(agent_uid)
		for await (const entry of store.list<GrantRecord>(prefix)) if (await wanted(entry)) found.push(entry)
		return found
	}
	const isVoid = async ({ key, value }: Entry<GrantRecord>): Promise<boolean> => {
		const [, , agent_uid, secret_id] = key as unknown as [string, string, string, string]
		return (await agents().find(value.agent_id))?.uid !== agent_uid || !(await store.get(keys.secret(secret_id)))
	}

	return {
		async create({ agent_id, secret: ref, reveal }) {
			const { grant, secret } = await inTurn(async () => {
				const [agent, secret] = [await agents().get(agent_id), await findSecret(ref)]
				if (!secret) {
					throw new Fault('not_found', `there is no secret "${ref}"; POST /v1/vault/secrets stores one`)
				}
				const key = keys.grant(agent.uid, secret.id)
				const earlier = await store.get<GrantRecord>(key)
				if (earlier) {
					throw new Fault(
						'already_exists',
						`agent "${agent_id}" has this secret already, by grant ${earlier.value.grant_id}; to change it, DELETE /v1/vault/grants/${earlier.value.grant_id} first`,
					)
				}
				if (!(await hasRoom()))
					throw new Fault('conflict', `there are ${GRANT_LIMIT} grants already; revoke some that nobody needs`)
				const grant = { grant_id: newId(), agent_id, secret_id: secret.id, reveal, created_at: now() }
				const { secret_id, ...rest } = grant
				const record: GrantRecord = { ...rest, mark: markOf({ ...grant, agent_uid: agent.uid }) }
				await store.commit(SCOPE, [
					{ key, value: record, expect: null },
					{ key: keys.grantId(grant.grant_id), value: { agent_uid: agent.uid, secret_id }, expect: null },
				])
				// Deleted meanwhile, it may have been swept before this grant was there.
				if ((await agents().find(agent_id))?.uid !== agent.uid) {
					await remove(await collect(() => true, agent.uid))
					throw new Fault('not_found', `agent "${agent_id}" was deleted meanwhile`)
				}
				return { grant, secret: secret.about.name }
			})
			const { grant_id, secret_id } = grant
			await tell('vault.granted', { grant_id, secret_id, secret, reveal }, agent_id)
			return grant
		},
		async remove(grant_id) {
			const { secret_id, agent_id } = await inTurn(async () => {
				const place = await store.get<{ agent_uid: string; secret_id: string }>(keys.grantId(grant_id))
				const key = place && keys.grant(place.value.agent_uid, place.value.secret_id)
				const entry = key && (await store.get<GrantRecord>(key))
				if (entry?.value.grant_id !== grant_id)
					throw new Fault('not_found', `there is no grant "${grant_id}"; GET /v1/vault/grants lists them`)
				await remove([entry])
				return { secret_id: key?.[3], agent_id: entry.value.agent_id }
			})
			await tell('vault.revoked', { grant_id, secret_id }, agent_id)
		},
		async list(agent_id) {
			const agent = agent_id === undefined ? undefined : await agents().find(agent_id)
			if (agent_id !== undefined && !agent) return []
			const grants: Grant[] = []
			for (const entry of await collect(async (one) => !(await isVoid(one)), agent?.uid)) {
				const grant = checked(entry)
				if (grant) grants.push(view(grant))
			}
			return grants.toSorted((a, b) => (a.grant_id < b.grant_id ? -1 : 1))
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
			// What changed while this was read may be missing from it.
			if (before === changes && revealedTo.size < CACHE_LIMIT) revealedTo.set(uid, ids)
			return ids
		},
		forgetAgent: (agent_uid) => inTurn(async () => remove(await collect(() => true, agent_uid))),
		async forgetSecret(secret_id) {
			const entries = await collect(({ key }) => key[3] === secret_id)
			await remove(entries)
			return entries.length
		},
		sweep: () => inTurn(async () => remove(await collect(isVoid))),
	}
}

function view({ grant_id, agent_id, secret_id, reveal, created_at }: Grant): Grant {
	return { grant_id, agent_id, secret_id, reveal, created_at }
}
