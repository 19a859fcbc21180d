/** The service of the vault: reads secrets under grants, fills in handles, and reads secrets for the gateway's own use. */
import { Fault, isFault } from '../../core/errors.ts'
import { unguarded } from '../../core/events/families.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import { deleteAll } from '../shared/delete-all.ts'
import { seal, unseal } from './cipher.ts'
import type { SecretReading, VaultService } from './contract.ts'
import { servicesOf } from './services.ts'
import { grantsOf } from './grants.ts'
import type { GrantStore } from './grants.ts'
import { NAME, fillHandles, handleOf, namesIn } from './handles.ts'
import { openKeyring } from './keyring.ts'
import type { Keyring } from './keyring.ts'
import { SCOPE, keys } from './keys.ts'
import { masterKeyFrom } from './master-key.ts'
import type { KeySource } from './master-key.ts'
import { rewrapKeys } from './rotation.ts'
import { secretReaderOf } from './secret-reader.ts'
import { secretsOf } from './secrets.ts'
import type { SecretStore } from './secrets.ts'

/** What a model gets of a secret: the value if the grant reveals it, else a handle, with the grant's hosts. */
export type ForModel = { value: string } | { handle: string; hosts?: string[] }

export interface RunningVault extends VaultService {
	grants: GrantStore
	secrets: SecretStore
	/** Throws like `read`, but needs no outlet if the grant has hosts. */
	forModel(name: string, reading: SecretReading): Promise<ForModel>
}

const CHANGES = ['vault.secret_created', 'vault.secret_updated', 'vault.secret_deleted']

/** Opens the vault. If the key is missing or wrong, the vault is locked, and the gateway still starts. */
export async function openVault(ctx: Context): Promise<RunningVault> {
	let opened: { ring: Keyring; source: KeySource } | undefined
	let locked: Fault | undefined
	try {
		opened = await unlock(ctx)
	} catch (error) {
		if (!isFault(error)) throw error
		locked = error
		ctx.log.error(`the vault is locked: ${error.message}`)
		ctx.trouble(`the vault is locked: ${error.message}`)
	}
	const unlocked = () => {
		if (opened) return opened
		throw new Fault('vault_locked', `the vault is locked: ${locked?.message}`)
	}

	const services = servicesOf(ctx, () => unlocked().ring)
	const reader = secretReaderOf(services)
	const find = async (ref: string) => (NAME.test(ref) ? reader.find(ref) : undefined)
	const grants = grantsOf(services, find)
	const secrets = secretsOf(services, grants.forgetSecret)
	ctx.redactor.showNamesTo('vault:read')
	if (opened) await reader.announceRead(await grants.holders(), await grants.formerHolders())

	const granted = async (name: string, agent: AgentRef) => {
		const secret = await byName(name)
		const grant = secret && (await grants.of(agent, secret.id))
		return grant && { secret, grant }
	}
	const deny = (name: string, { via, emit }: SecretReading, message: string, reason?: string): never => {
		const payload = { secret: name.slice(0, 128), via, ...(reason !== undefined && { reason }) }
		unguarded(emit)({ event_type: 'vault.denied', payload })
		throw new Fault('vault_denied', message)
	}
	/** Returns a value with its grant. `leaves`: the value leaves the gateway, so the grant's hosts must include the outlet. */
	const readGranted = async (name: string, reading: SecretReading, leaves: boolean) => {
		const { agent, via, emit, outlet } = reading
		const found = await granted(name, agent)
		if (!found) {
			const shown = name.slice(0, 128)
			return deny(
				name,
				reading,
				`this agent has no grant for a secret "${shown}"; an operator can add one with svc grants add, or POST /v1/vault/grants`,
			)
		}
		const { secret, grant } = found
		if (leaves && grant.hosts) {
			const { lists } = await import('../../core/fetch/policy.ts')
			const rule = `the grant restricts "${name}" to ${grant.hosts.join(', ')}`
			if (!outlet) return deny(name, reading, `${rule}: it is sent only over HTTP, and not to ${via}`, 'hosts')
			if (!lists(grant.hosts, outlet.url))
				return deny(name, reading, `${rule}: it is not sent to ${outlet.url.host}`, 'hosts')
			outlet.keepTo(grant.hosts)
		}
		const value = await reader.reveal(secret, agent)
		const { grant_id } = grant
		unguarded(emit)({ event_type: 'vault.accessed', payload: { secret: name, secret_id: secret.id, grant_id, via } })
		return { value, grant }
	}
	const read = async (name: string, reading: SecretReading) => {
		const { value, grant } = await readGranted(name, reading, true)
		return { value, reveal: grant.reveal }
	}
	/** Agents may use a secret's name only, not its id. */
	const byName = async (name: string) => {
		const secret = await find(name)
		return secret?.about.name === name ? secret : undefined
	}

	return {
		secrets,
		grants,
		read,
		async forModel(name, reading) {
			const { value, grant } = await readGranted(name, reading, false)
			if (grant.reveal) return { value }
			return { handle: handleOf(name), ...(grant.hosts && { hosts: grant.hosts }) }
		},
		fill: (data, reading, only) => fillHandles(data, async (name) => (await read(name, reading)).value, only),
		named: namesIn,
		hostsOf: async (name, agent) => (await granted(name, agent))?.grant.hosts,
		revealed: async (agent) => (opened ? grants.revealed(agent) : new Set()),
		async open(ref) {
			const secret = await find(ref)
			if (secret) return reader.reveal(secret, 'gateway')
			const hint = { route: 'POST /v1/vault/secrets', does: 'stores one' }
			throw new Fault('not_found', `there is no secret "${ref.slice(0, 128)}" in the vault`, { hint })
		},
		has: async (ref) => (await find(ref)) !== undefined,
		onChanged: (listener) =>
			ctx.events.subscribe({ types: CHANGES }, ({ event: { payload } }) =>
				listener({ id: String(payload.secret_id), name: String(payload.name) }),
			),
		seal: async (text, about) => seal(unlocked().ring.sealing, text, ['sealed', about]),
		async unseal(sealed, about) {
			const text = unseal(unlocked().ring.sealing, sealed, ['sealed', about])
			if (text) return text.toString()
			throw new Fault('vault_locked', 'this data was encrypted by another vault, or was changed later; create it again')
		},
		async rotateKey() {
			const count = await services.queue.run(async () => {
				const vault = unlocked()
				const { key_id, own_keys } = (await vault.ring.state()).value
				// Resume an interrupted change of the key instead of creating another key.
				const isPending = key_id !== vault.source.wanted.id || Object.keys(own_keys).length > 1
				if (!isPending) vault.source = vault.source.renew()
				return rewrapKeys(vault.source, ctx.store, vault.ring)
			})
			await services.emit('vault.key_rotated', { secrets: count })
			return count
		},
		async reset() {
			const count = await services.queue.run(async () => {
				if (opened)
					throw new Fault(
						'conflict',
						'the vault is not locked, so nothing was deleted; svc vault delete deletes a secret',
					)
				// Check the key first: an invalid key would leave the vault locked and empty.
				masterKeyFrom({ home: ctx.gateway.home, env: ctx.env, isNew: true })
				const { store } = ctx
				let deleted = 0
				for await (const _ of store.keys(keys.secrets)) deleted++
				await deleteAll(store, [SCOPE], ({ key }) => key.join() !== keys.state.join())
				// The state is deleted last: after an interruption the vault is still locked, and the reset can be repeated.
				await store.delete(keys.state)
				opened = await unlock(ctx)
				locked = undefined
				ctx.trouble(null)
				return deleted
			})
			await services.emit('vault.reset', { secrets: count })
			return count
		},
	}
}

async function unlock(ctx: Context): Promise<{ ring: Keyring; source: KeySource }> {
	const { store, env, gateway, log } = ctx
	const isNew = (await store.get(keys.state)) === undefined
	const source = masterKeyFrom({ home: gateway.home, env, isNew })
	const ring = await openKeyring(store, source)
	try {
		const count = await rewrapKeys(source, store, ring)
		if (count > 0) log.info({ secrets: count }, 'the vault is encrypted with the new master key')
	} catch (error) {
		// Every secret can still be read, since both keys are available.
		log.error({ err: error }, 'the change of the master key was interrupted; the next start resumes it')
	}
	return { ring, source }
}
