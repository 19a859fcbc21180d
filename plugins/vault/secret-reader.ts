/** Finding secrets and giving out their values: no grant is asked for here. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Desk } from './desk.ts'
import { keys } from './keys.ts'
import { damaged, nameHash, openSecret, openValue, sealAbout } from './secret-record.ts'
import type { OpenSecret, SecretRecord } from './secret-record.ts'

export interface SecretReader {
	/** By id or name; undefined where there is none. Throws `store_damaged`. */
	find(ref: string): Promise<OpenSecret | undefined>
	/** From now on the redactor looks for the value, and does so from the start after a restart. Throws `store_damaged`. */
	reveal(secret: OpenSecret): Promise<string>
	/** Tells the redactor of every secret that was ever read. */
	announceRead(): Promise<void>
}

export function secretReaderOf({ ctx: { store, redactor, log }, ring }: Desk): SecretReader {
	const opened = async (id: string): Promise<OpenSecret | undefined> => {
		const entry = await store.get<SecretRecord>(keys.secret(id))
		return entry && openSecret(id, entry.value, ring())
	}

	/** One value, whichever version it is: it may be replaced between the two looks. */
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

	/** Durable before anybody gets the value. */
	const markRead = async (id: string): Promise<void> => {
		for (;;) {
			const entry = await store.get<SecretRecord>(keys.secret(id))
			if (!entry) return // deleted meanwhile
			const { key, value, rev } = entry
			const secret = openSecret(id, value, ring())
			if (secret.about.was_read) return
			try {
				const about = sealAbout({ ...secret, about: { ...secret.about, was_read: true } })
				return void (await store.update(key, { ...value, about }, rev))
			} catch (error) {
				if (!isFault(error, 'conflict')) throw error
			}
		}
	}

	return {
		async find(ref) {
			const byId = await opened(ref)
			if (byId) return byId
			const pointer = await store.get<{ id: string }>(keys.name(nameHash(ring(), ref)))
			const secret = pointer && (await opened(pointer.value.id))
			// The index was changed from outside where it leads to another one.
			return secret?.about.name === ref ? secret : undefined
		},
		async reveal(found) {
			const { secret, value } = await valueOf(found)
			if (!secret.about.was_read) await markRead(secret.id)
			redactor.add({ id: secret.id, name: secret.about.name, value })
			return value
		},
		async announceRead() {
			for await (const { key, value: record } of store.list<SecretRecord>(keys.secrets)) {
				const id = key.at(-1) as string
				try {
					const found = openSecret(id, record, ring())
					if (!found.about.was_read) continue
					const { secret, value } = await valueOf(found)
					redactor.add({ id, name: secret.about.name, value })
				} catch (error) {
					log.error({ err: error, secret_id: id }, 'a secret cannot be read')
				}
			}
		},
	}
}
