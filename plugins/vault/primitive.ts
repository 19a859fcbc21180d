import { Joi } from '../../core/util/lazy-joi.ts'
import type { ToolDefinition } from '../../core/plugin.ts'
import type { RunningVault } from './vault.ts'

/** `vault.read`: returns a handle or, if the grant reveals it, the value itself. */
export function vaultRead(vault: RunningVault): ToolDefinition {
	return {
		name: 'vault.read',
		description:
			'Returns a secret, such as a key or password, by its name. Usually you get a handle, which you write in place of the value.',
		parameters: Joi.object({ name: Joi.string().min(1).max(128).required().description('Name of the secret.') }),
		async run(args, { agent, emit }) {
			const name = args.name as string
			const given = await vault.forModel(name, { agent, via: 'vault.read', emit })
			if ('value' in given) return { name, ...given }
			const where = given.hosts ? `, but only in requests to ${given.hosts.join(', ')}` : ''
			return {
				name,
				...given,
				use: `Write the handle unchanged in place of the value in the arguments of a skill or of an MCP tool; the gateway replaces it by the value${where}.`,
			}
		},
	}
}
