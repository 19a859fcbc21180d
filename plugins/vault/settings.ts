import { defineSettings } from '../../config/declaration.ts'

export default defineSettings({
	async installationKey(home, env) {
		// Imported here, since only a gateway on a cluster needs it.
		const { masterKeyFrom } = await import('./master-key.ts')
		return masterKeyFrom({ home, env, isNew: false }).wanted.key
	},
	variables: {
		SVC_VAULT_KEY: 'The master key of the vault, 32 bytes as base64 or hex, in place of the file `keys/vault.key`.',
		SVC_VAULT_KEY_OLD: 'The previous master key, for the first start after a change of the key.',
		CREDENTIALS_DIRECTORY: 'Set by systemd; the master key may be its credential `svc-vault-key`.',
	},
})
