/** Checks of `svc doctor`: the master key, and whether it decrypts every secret. */
import { NotChecked, error, ok } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, CheckContext, Secrets } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import type { Store } from '../../core/store/ports.ts'
import type { Secret } from './contract.ts'
import { openKeyring } from './keyring.ts'
import type { Keyring } from './keyring.ts'
import { keys } from './keys.ts'
import { masterKeyFrom } from './master-key.ts'
import { nameHash, openSecret, openValue } from './secret-record.ts'
import type { SecretRecord } from './secret-record.ts'

/** Limit of the secrets that are checked; each takes about 20 µs. */
const SECRETS = 10_000

export default {
	variables: { SVC_VAULT_KEY: 'secret', SVC_VAULT_KEY_OLD: 'secret' },
	checks: [
		{
			id: 'vault.key',
			about: 'the key of the vault',
			async run(context) {
				try {
					if (await context.gateway()) {
						await listed(context)
						return ok('the vault is unlocked')
					}
					const vault = await unlocked(context)
					return ok(
						vault ? `${vault.name} unlocks the vault` : 'there is no vault yet; the first start creates its key',
					)
				} catch (thrown) {
					if (!isFault(thrown, 'vault_locked')) throw thrown
					return error(
						messageOf(thrown),
						'restore the right key, in SVC_VAULT_KEY or keys/vault.key; if it is lost, so are the secrets: svc vault reset deletes them, then store them again',
					)
				}
			},
		},
		{
			id: 'vault.secrets',
			about: 'whether the secrets can be decrypted',
			async run(context) {
				const damaged = await damagedOf(context)
				if (damaged.ids.length === 0)
					return ok(
						damaged.count === 0 ? 'the vault has no secrets' : `each secret can be decrypted (${damaged.count})`,
					)
				return damaged.ids.map((id) =>
					error(
						`the record of secret ${id} is damaged, or was changed outside the gateway`,
						`delete it and store it again: svc vault delete ${id}; or restore a backup`,
					),
				)
			},
		},
	],
	async secrets(context): Promise<Secrets> {
		if (await context.gateway()) {
			const known = new Set((await orNotChecked(listed(context))).flatMap(({ id, name }) => [id, name]))
			return { find: async (ref) => (known.has(ref) ? { value: null } : undefined) }
		}
		const vault = await orNotChecked(unlocked(context))
		return { find: async (ref) => vault && valueOf(ref, vault) }
	},
} satisfies DoctorFile

interface Unlocked {
	store: Store
	ring: Keyring
	/** Where the key comes from, for people. */
	name: string
}

/** Undefined if there is no vault yet. Throws `vault_locked`. */
async function unlocked(context: CheckContext): Promise<Unlocked | undefined> {
	return context.once('vault', async () => {
		const store = await context.store()
		// With an existing state, the calls below write nothing.
		if (!store || !(await store.get(keys.state))) return undefined
		const source = masterKeyFrom({ home: context.home, env: context.env, isNew: false })
		return { store, ring: await openKeyring(store, source), name: source.name }
	})
}

/** If the vault is locked, reports the check as not run: the check of the key reports the cause. */
async function orNotChecked<T>(vault: Promise<T>): Promise<T> {
	try {
		return await vault
	} catch (thrown) {
		if (isFault(thrown, 'vault_locked')) throw new NotChecked('the vault is locked', 'fix what vault.key reports first')
		throw thrown
	}
}

/** The secrets that a running gateway lists. Throws `vault_locked`. */
async function listed(context: CheckContext): Promise<Secret[]> {
	return context.once(
		'secrets listed',
		async () => (await (await context.gateway())?.get<Secret[]>('/v1/vault/secrets')) ?? [],
	)
}

async function damagedOf(context: CheckContext): Promise<{ ids: string[]; count: number }> {
	if (await context.gateway()) {
		const secrets = await orNotChecked(listed(context))
		return { ids: secrets.filter(({ damaged }) => damaged).map(({ id }) => id), count: secrets.length }
	}
	const vault = await orNotChecked(unlocked(context))
	const ids: string[] = []
	let count = 0
	if (!vault) return { ids, count }
	const sealed = new Map<string, Uint8Array>()
	for await (const { key, value } of vault.store.list<Uint8Array>(keys.values)) {
		sealed.set(key.slice(2).join(' '), value)
	}
	for await (const { key, value } of vault.store.list<SecretRecord>(keys.secrets, { limit: SECRETS })) {
		const id = key.at(-1) as string
		count++
		try {
			const secret = openSecret(id, value, vault.ring)
			const bytes = sealed.get(`${id} ${secret.version}`)
			if (!bytes) ids.push(id)
			else openValue(secret, bytes)
		} catch (thrown) {
			if (!isFault(thrown, 'store_damaged')) throw thrown
			ids.push(id)
		}
	}
	return { ids, count }
}

async function valueOf(ref: string, { store, ring }: Unlocked): Promise<{ value: string } | undefined> {
	const pointer = await store.get<{ id: string }>(keys.name(nameHash(ring, ref)))
	const id = pointer?.value.id ?? ref
	const record = await store.get<SecretRecord>(keys.secret(id))
	if (!record) return undefined
	const secret = openSecret(id, record.value, ring)
	const sealed = await store.get<Uint8Array>(keys.value(id, secret.version))
	return sealed && { value: openValue(secret, sealed.value) }
}
