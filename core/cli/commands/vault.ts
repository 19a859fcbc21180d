import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { count } from '../count.ts'
import { secretInput, takesSecret } from '../secret-input.ts'
import { when } from '../when.ts'

interface Secret {
	id: string
	name: string
	created_at: string
	policy_label?: string
	damaged?: true
	warning?: string
}

export const register: Register = (program, cli) => {
	const vault = program.command('vault').description('Keep secrets').addHelpText('after', examples)

	vault
		.command('list')
		.description('List the secrets, never their values')
		.action(async () => {
			const secrets = await cli.api.request<Secret[]>('GET', '/v1/vault/secrets')
			cli.out.answer(secrets, (list, style) =>
				style.table(
					['name', 'label', 'id', 'created'],
					list.map((one) => [
						one.damaged ? `${one.name} (damaged: delete it)` : one.name,
						one.policy_label,
						one.id,
						when(one.created_at),
					]),
					'No secrets yet. Store one: svc vault set NAME',
				),
			)
		})

	takesSecret(vault.command('set <name>'))
		.description('Store a secret, or give it another value: asks for it, or reads standard input')
		.option('--label <label>', 'what it is for; `channel` marks the token of a bot')
		.action(async (name: string, { label }: { label?: string }, command) => {
			if (name.includes('='))
				throw new CliError('usage', 'give the name alone: the value is asked for, or read from standard input')
			const value = await secretInput(cli, command, `Value of ${name}`)
			const { secret, made } = await store(name, value, label)
			if (secret.warning) cli.out.note(`Note: ${secret.warning}.`)
			cli.out.answer({ ...secret, status: made ? 'created' : 'changed' }, () =>
				made
					? `Stored ${name}. An agent may use it after: svc grants add AGENT ${name}`
					: `Changed the value of ${name}. Its grants stay.`,
			)
		})

	vault
		.command('delete <secret>')
		.description('Delete a secret, by name or id, with its grants')
		.option(...yesOption)
		.action(async (secret: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Delete the secret ${secret} with its grants?`)
			await cli.api.request('DELETE', path`/v1/vault/secrets/${secret}`)
			cli.out.answer({ secret, status: 'deleted' }, () => `Deleted ${secret}.`)
		})

	vault
		.command('rotate-key')
		.description('Change the master key; secrets and grants stay as they are')
		.option(...yesOption)
		.action(async (options: { yes?: boolean }) => {
			await consent(cli, options, 'Make a new keys/vault.key? Backups made so far need a copy of the present one.')
			const rotated = await cli.api.request<{ secrets: number }>('POST', '/v1/vault/rotate-key')
			cli.out.answer(
				rotated,
				({ secrets }) => `The master key is a new one, for ${count(secrets, 'secret')}. Back it up.`,
			)
		})

	/** Made, or changed where it is there: a caller who may write needs no right to list. */
	async function store(name: string, value: string, label?: string): Promise<{ secret: Secret; made: boolean }> {
		try {
			const body = { name, value, ...(label !== undefined && { policy_label: label }) }
			return { secret: await cli.api.request<Secret>('POST', '/v1/vault/secrets', body), made: true }
		} catch (error) {
			if (!(error instanceof CliError) || error.code !== 'already_exists') throw error
			if (label !== undefined)
				throw new CliError('conflict', `${name} is there already, and its label cannot change: delete it first`)
			return { secret: await cli.api.request<Secret>('PUT', path`/v1/vault/secrets/${name}`, { value }), made: false }
		}
	}
}

const examples = `
Examples:
  svc vault set GITHUB_TOKEN               asks for the value, and does not show it
  gh auth token | svc vault set GITHUB_TOKEN
  svc vault set TELEGRAM_TOKEN --label channel < token.txt
  svc vault list
  svc vault delete GITHUB_TOKEN`
