import Joi from 'joi'
import type { ToolDefinition } from '../../core/plugin.ts'
import type { Vault } from './contract.ts'
import { handleOf } from './handles.ts'

/** `vault.read`: a handle or, where the grant says so, the value itself. */
export function vaultRead(vault: Vault): ToolDefinition {
	return {
		name: 'vault.read',
		description:
			'Gives you a secret, such as a key or password, by its name. Usually you get a handle to put where the value belongs.',
		parameters: Joi.object({ name: Joi.string().min(1).max(128).required().description('Name of the secret.') }),
		async run(args, { agent, emit }) {
			const name = args.name as string
			const { value, reveal } = await vault.read(name, { agent, via: 'vault.read', emit })
			if (reveal) return { name, value }
			return {
				name,
				handle: handleOf(name),
				use: 'Write the handle as it is where the value belongs in the arguments of a skill or of an MCP tool; the gateway puts the value there.',
			}
		},
	}
}
