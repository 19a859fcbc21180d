/** Finds secrets and returns their values. Does not check grants. */
import { Fault } from '../../core/errors.ts'
import type { AgentRef } from '../../core/plugin.ts'
import { change } from '../../core/store/change.ts'
import { openEarlier } from './earlier-values.ts'
import type { Holder } from './grants.ts'
import type { VaultServices } from './services.ts'
import { SCOPE, keys } from './keys.ts'
import { damaged, nameHash, openSecret, openValue, sealAbout } from './secret-record.ts'
import type { OpenSecret, SecretRecord } from './secret-record.ts'

type SecretHolders = ReadonlyMap<string, readonly Holder[]>

export function secretReaderOf({ ctx: { store, redactor, log }, ring }: VaultServices) {
	const opened = async (id: string): Promise<OpenSecret | undefined> => {
		const entry = await store.get<SecretRecord>(keys.secret(id))
		return entry && openSecret(id, entry.value, ring())
	}

	/** Returns the value of some version: the value may be replaced between the two reads. */
	const valueOf = async (found: OpenSecret): Promise<{ secret: OpenSecret; value: string }> => {
		for (let secret = found; ;) {
			const sealed = await store.get<Uint8Array>(keys.value(secret.id, secret.version))
			if (sealed) return { secret, value: openValue(secret, sealed.value) }
			const now = await opened(found.id)
			if (!now) throw new Fault('not_found', `secret "${found.id}" was deleted meanwhile`)
			if (now.version === secret.version) throw damaged(found.id)
			secret = now
		}
	}

	/**
	 * Stores durably that the secret was read, before the value is returned. False if the value was replaced meanwhile: it was not
	 * kept as an earlier value, so it must not be returned.
	 */
	const markRead = ({ id, version }: OpenSecret): Promise<boolean> =>
		change(store, SCOPE, async () => {
			const entry = await store.get<SecretRecord>(keys.secret(id))
			const secret = entry && openSecret(id, entry.value, ring())
			if (!secret || secret.version !== version) return { result: !secret }
			if (secret.about.was_read) return { result: true }
			const about = sealAbout({ ...secret, about: { ...secret.about, was_read: true } })
			return { ops: [{ key: entry.key, value: { ...entry.value, about }, expect: entry.rev }], result: true }
		})

	return {
		/** By id or name; undefined if there is none. Throws `store_damaged`. */
		async find(ref: string): Promise<OpenSecret | undefined> {
			const byId = await opened(ref)
			if (byId) return byId
			const pointer = await store.get<{ id: string }>(keys.name(nameHash(ring(), ref)))
			const secret = pointer && (await opened(pointer.value.id))
			// An index entry for a secret with another name was changed outside the gateway.
			return secret?.about.name === ref ? secret : undefined
		},
		/** Returns the value, and adds it to the redactor for this reader, also after restarts. Throws `store_damaged`. */
		async reveal(found: OpenSecret, reader: AgentRef | 'gateway'): Promise<string> {
			let { secret, value } = await valueOf(found)
			while (!secret.about.was_read && !(await markRead(secret))) ({ secret, value } = await valueOf(found))
			redactor.add(reader, { id: secret.id, name: secret.about.name, value })
			return value
		},
		/**
		 * Adds every secret that was ever read to the redactor, with its earlier values: for the agents that have a grant, or for the
		 * gateway if there is no grant; and for those that had one. `holders`, `formerHolders`: by the id of the secret.
		 */
		async announceRead(holders: SecretHolders, formerHolders: SecretHolders): Promise<void> {
			for await (const { key, value: record } of store.list<SecretRecord>(keys.secrets)) {
				const id = key.at(-1) as string
				try {
					const found = openSecret(id, record, ring())
					if (!found.about.was_read) continue
					const { secret, value } = await valueOf(found)
					const earlier = openEarlier(id, (await store.get<Uint8Array>(keys.earlier(id)))?.value, ring())
					const { name } = secret.about
					for (const reader of [...(holders.get(id) ?? (['gateway'] as const)), ...(formerHolders.get(id) ?? [])]) {
						const since = (reader !== 'gateway' && reader.since) || ''
						for (const { replaced_at, value: earlierValue } of earlier)
							if (since <= replaced_at) redactor.add(reader, { id, name, value: earlierValue })
						redactor.add(reader, { id, name, value })
					}
				} catch (error) {
					log.error({ err: error, secret_id: id }, 'a secret cannot be read')
				}
			}
		},
	}
}
