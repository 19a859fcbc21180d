import { definePlugin } from '../../core/plugin.ts'
import type { ErrorCode } from '../../core/plugin.ts'
import events from './events.ts'
import { vaultRead } from './primitive.ts'
import type { VaultCode, VaultService } from './contract.ts'
import { routes } from './routes.ts'
import { openVault } from './vault.ts'

/** Secrets, encrypted at rest; grants to read them; the primitive `vault.read`. */
export default definePlugin<unknown, VaultService>({
	name: 'vault',
	needs: ['auth', 'agents'],
	events,
	scopes: {
		'vault:read': 'List secrets',
		'vault:write': 'Create and manage secrets and grants',
	},
	errors: {
		vault_denied: { status: 403, description: 'The agent has no grant for the secret.' },
		vault_locked: {
			status: 503,
			description: 'The vault has no master key, or a different one from the key that its secrets were encrypted with.',
		},
	} satisfies Record<VaultCode, ErrorCode>,
	async start(ctx) {
		const vault = await openVault(ctx)
		ctx.primitive(vaultRead(vault))
		ctx.extend('prompt', {
			stable: () =>
				'Secrets, such as keys and passwords, are in a vault. vault.read usually returns a handle, {{secret:NAME}}: write it unchanged in place of the value in the arguments of a skill or an MCP tool, and the gateway replaces it by the value. Never ask a person to write a secret into the conversation. [redacted:NAME] marks a removed secret.',
		})
		ctx.on('agent.deleted', ({ payload }) => vault.grants.forgetAgent(String(payload.uid)))
		void ctx.serving
			.then(() => Promise.all([vault.grants.sweep(), vault.secrets.sweep()]))
			.catch((error: unknown) => ctx.log.error({ err: error }, 'leftovers of deleted secrets could not be removed'))
		return vault
	},
	http: routes,
})
