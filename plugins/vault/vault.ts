/** The vault as other plugins see it: reading under a grant, filling in, opening for the gateway's own use. */
import { Fault, isFault } from '../../core/errors.ts'
import type { Context } from '../../core/plugin.ts'
import { seal, unseal } from './cipher.ts'
import type { Reading, VaultService } from './contract.ts'
import { openDesk } from './desk.ts'
import { grantsOf } from './grants.ts'
import type { GrantStore } from './grants.ts'
import { NAME, fillHandles } from './handles.ts'
import { openKeyring } from './keyring.ts'
import type { Keyring } from './keyring.ts'
import { keys } from './keys.ts'
import { masterKeyFrom } from './master-key.ts'
import type { KeySource } from './master-key.ts'
import { bringUnder } from './rotation.ts'
import { secretReaderOf } from './secret-reader.ts'
import { secretsOf } from './secrets.ts'

export interface RunningVault extends VaultService {
	grants: GrantStore
}

const CHANGES = ['vault.secret_created', 'vault.secret_updated', 'vault.secret_deleted']

/** Never throws for a key that is missing or wrong: then the vault is locked, and everything else works. */
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

	const desk = openDesk(ctx, () => unlocked().ring)
	const reader = secretReaderOf(desk)
	const find = async (ref: string) => (NAME.test(ref) ? reader.find(ref) : undefined)
	const grants = grantsOf(desk, find)
	const secrets = secretsOf(desk, grants.forgetSecret)
	if (opened) await reader.announceRead()

	const read = async (name: string, { agent, via, emit }: Reading) => {
		const secret = await byName(name)
		const grant = secret && (await grants.of(agent, secret.id))
		if (!grant) {
			const shown = name.slice(0, 128)
			emit({ event_type: 'vault.denied', payload: { secret: shown, via } })
			throw new Fault(
				'vault_denied',
				`this agent has no grant for a secret "${shown}"; an operator gives it with POST /v1/vault/grants`,
			)
		}
		const value = await reader.reveal(secret)
		const { grant_id, reveal } = grant
		emit({ event_type: 'vault.accessed', payload: { secret: name, secret_id: secret.id, grant_id, via } })
		return { value, reveal }
	}
	/** An agent knows a secret by its name, not by its id. */
	const byName = async (name: string) => {
		const secret = await find(name)
		return secret?.about.name === name ? secret : undefined
	}

	return {
		secrets,
		grants,
		read,
		fill: (data, reading) => fillHandles(data, async (name) => (await read(name, reading)).value),
		revealed: async (agent) => (opened ? grants.revealed(agent) : new Set()),
		async open(ref) {
			const secret = await find(ref)
			if (secret) return reader.reveal(secret)
			throw new Fault(
				'not_found',
				`there is no secret "${ref.slice(0, 128)}" in the vault; POST /v1/vault/secrets stores one`,
			)
		},
		has: async (ref) => (await find(ref)) !== undefined,
		onChanged: (heard) =>
			ctx.events.subscribe({ types: CHANGES }, ({ event: { payload } }) =>
				heard({ id: String(payload.secret_id), name: String(payload.name) }),
			),
		seal: async (text, about) => seal(unlocked().ring.sealing, text, ['sealed', about]),
		async unseal(sealed, about) {
			const text = unseal(unlocked().ring.sealing, sealed, ['sealed', about])
			if (text) return text.toString()
			throw new Fault('vault_locked', 'this was sealed in another vault, or was changed since; make it anew')
		},
		async rotateKey() {
			const count = await desk.inTurn(async () => {
				const vault = unlocked()
				const { key_id, own_keys } = (await vault.ring.state()).value
				// A change that broke off is brought to its end.
				const isPending = key_id !== vault.source.wanted.id || Object.keys(own_keys).length > 1
				if (!isPending) vault.source = vault.source.renew()
				return bringUnder(vault.source, ctx.store, vault.ring)
			})
			await desk.tell('vault.key_rotated', { secrets: count })
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
		const count = await bringUnder(source, store, ring)
		if (count > 0) log.info({ secrets: count }, 'the vault is encrypted with its new key')
	} catch (error) {
		// With both keys at hand every secret can be read.
		log.error({ err: error }, 'the change of the vault key did not come to its end; the next start goes on with it')
	}
	return { ring, source }
}
