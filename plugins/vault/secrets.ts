/** Creates, changes, deletes and lists secrets. */
import { Fault, isFault } from '../../core/errors.ts'
import { newId, now, timeOfId } from '../../core/util/ids.ts'
import { change } from '../../core/store/change.ts'
import type { Entry, Op } from '../../core/store/ports.ts'
import type { Secret, Secrets } from './contract.ts'
import { sealEarlier } from './earlier-values.ts'
import { roomBelow } from './services.ts'
import type { VaultServices } from './services.ts'
import { guard } from './keyring.ts'
import { SCOPE, keys } from './keys.ts'
import { nameHash, openSecret, openValue, sealSecret } from './secret-record.ts'
import type { OpenSecret, SecretRecord } from './secret-record.ts'

const SECRET_LIMIT = 10_000

export interface SecretStore extends Secrets {
	/** Removes earlier values that gateways of older versions left behind when they deleted secrets. */
	sweep(): Promise<void>
}

export function secretsOf(
	{ ctx: { store }, ring, queue, emit }: VaultServices,
	removeGrants: (secret_id: string) => Promise<number>,
): SecretStore {
	const hasRoom = roomBelow(SECRET_LIMIT, () => store.list(keys.names))

	const entryOf = (id: string): Promise<Entry<SecretRecord> | undefined> => store.get<SecretRecord>(keys.secret(id))

	const pointerOf = (name: string): Promise<Entry<{ id: string }> | undefined> =>
		store.get<{ id: string }>(keys.name(nameHash(ring(), name)))

	const mustFind = async (id: string): Promise<Entry<SecretRecord>> => {
		const entry = await entryOf(id)
		if (!entry)
			throw new Fault('not_found', `there is no secret "${id}"`, {
				hint: { route: 'GET /v1/vault/secrets', does: 'lists them' },
			})
		return entry
	}

	/** The id of the secret with this id or name. Any other reference is returned unchanged. */
	const idOf = async (ref: string): Promise<string> =>
		(await entryOf(ref)) ? ref : ((await pointerOf(ref))?.value.id ?? ref)

	/** The write that keeps the current value as an earlier value, if it was read. */
	const keepValue = async (secret: OpenSecret, replaced_at: string): Promise<Op[]> => {
		const sealed = secret.about.was_read && (await store.get<Uint8Array>(keys.value(secret.id, secret.version)))
		if (!sealed) return []
		try {
			const value = openValue(secret, sealed.value)
			const before = await store.get<Uint8Array>(keys.earlier(secret.id))
			const earlier = sealEarlier(secret.id, before?.value, { value, replaced_at }, ring())
			return [{ key: keys.earlier(secret.id), value: earlier }]
		} catch (error) {
			if (!isFault(error, 'store_damaged')) throw error
			return []
		}
	}

	/** Commits what `make` returns. Retries if the master key was changed since `make` encrypted the values. */
	const write = <T>(make: (key_id: string) => Promise<{ ops: Op[]; result: T }>): Promise<T> =>
		change(store, SCOPE, async () => {
			const state = await ring().state()
			const { ops, result } = await make(state.value.key_id)
			return { ops: [...ops, guard(state)], result }
		})

	return {
		async create({ name, value, policy_label }) {
			const id = newId()
			const about = {
				name,
				created_at: timeOf(id),
				...(policy_label !== undefined && { policy_label }),
				was_read: false,
			}
			const created = await queue.run(async () => {
				if (!(await hasRoom()))
					throw new Fault(
						'conflict',
						`there are already ${SECRET_LIMIT} secrets, which is the limit; delete some that are no longer needed`,
					)
				return write(async (key_id) => {
					const taken = await pointerOf(name)
					// If a secret was changed outside the gateway and then deleted, its index entry may remain.
					if (taken && (await entryOf(taken.value.id))) {
						const params = { id: taken.value.id }
						const hint = { route: 'PUT /v1/vault/secrets/{id}', params, does: 'changes its value' }
						throw new Fault('already_exists', `there is a secret "${name}" already`, { hint })
					}
					const { record, sealed } = sealSecret({ id, version: 1, about, value }, ring(), key_id)
					const ops: Op[] = [
						{ key: keys.secret(id), value: record, expect: null },
						{ key: keys.value(id, 1), value: sealed, expect: null },
						{ key: keys.name(record.name_hash), value: { id }, expect: taken?.rev ?? null },
					]
					return { ops, result: view(id, about) }
				})
			})
			await emit('vault.secret_created', { secret_id: id, ...labels(about) })
			return created
		},
		async replace(ref, value, policy_label) {
			const id = await idOf(ref)
			const { about, version } = await queue.run(() =>
				write(async (key_id) => {
					const entry = await mustFind(id)
					const secret = openSecret(id, entry.value, ring())
					const { about, version: before } = secret
					if (policy_label !== undefined) checkLabel(about, policy_label)
					const version = before + 1
					const { record, sealed } = sealSecret({ id, version, about, value }, ring(), key_id)
					const ops: Op[] = [
						{ key: entry.key, value: record, expect: entry.rev },
						{ key: keys.value(id, version), value: sealed },
						{ key: keys.value(id, before), value: undefined },
						...(await keepValue(secret, now())),
					]
					return { ops, result: { about, version } }
				}),
			)
			await emit('vault.secret_updated', { secret_id: id, ...labels(about), version })
			return view(id, about)
		},
		async remove(ref) {
			const id = await idOf(ref)
			const deleted = await queue.run(async () => {
				const { key, value } = await mustFind(id)
				const name = nameIn(id, value)
				const pointer = await store.get<{ id: string }>(keys.name(value.name_hash))
				await store.commit(SCOPE, [
					{ key, value: undefined },
					{ key: keys.value(id, value.version), value: undefined },
					{ key: keys.earlier(id), value: undefined },
					// If the record was changed outside the gateway, its name may lead to the index entry of another secret.
					...(pointer?.value.id === id ? [{ key: pointer.key, value: undefined }] : []),
				])
				// Its grants are void now. After a crash, the next start deletes them.
				return { secret_id: id, name, grants: await removeGrants(id) }
			})
			await emit('vault.secret_deleted', deleted)
		},
		async list() {
			const secrets: Secret[] = []
			for await (const { key, value } of store.list<SecretRecord>(keys.secrets)) {
				const id = key.at(-1) as string
				try {
					secrets.push(view(id, openSecret(id, value, ring()).about))
				} catch (error) {
					if (!isFault(error, 'store_damaged')) throw error
					secrets.push({ id, name: UNREADABLE, created_at: timeOf(id), damaged: true })
				}
			}
			return secrets
		},
		async sweep() {
			for await (const key of store.keys(keys.allEarlier))
				if (!(await entryOf(key.at(-1) as string))) await store.delete(key)
		},
	}

	function nameIn(id: string, record: SecretRecord): string {
		try {
			return openSecret(id, record, ring()).about.name
		} catch (error) {
			if (!isFault(error, 'store_damaged')) throw error
			return UNREADABLE
		}
	}
}

/** Shown instead of the name of a secret whose record is damaged. */
const UNREADABLE = 'unreadable'

function view(id: string, { name, created_at, policy_label }: OpenSecret['about']): Secret {
	return { id, name, created_at, ...(policy_label !== undefined && { policy_label }) }
}

function checkLabel({ name, policy_label: label }: OpenSecret['about'], wanted: string): void {
	if (label === wanted) return
	const current = label === undefined ? 'no label' : `the label "${label}"`
	throw new Fault(
		'conflict',
		`the secret "${name}" has ${current}, and a label cannot be changed: leave it out, or delete the secret and store it again`,
	)
}

function labels({ name, policy_label }: OpenSecret['about']) {
	return { name, ...(policy_label !== undefined && { policy_label }) }
}

/** The creation time of an id (UUIDv7). */
function timeOf(id: string): string {
	return new Date(timeOfId(id) ?? 0).toISOString()
}
