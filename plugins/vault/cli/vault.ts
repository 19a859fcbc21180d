import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { pluralize } from '../../../core/util/pluralize.ts'
import { secretInput } from '../../../core/cli/secret-input.ts'
import { storeSecret } from '../../../core/cli/store-secret.ts'
import type { StoredSecret } from '../../../core/cli/store-secret.ts'
import { when } from '../../../core/cli/when.ts'

export default {
	examples: `
Examples:
  svc vault set GITHUB_TOKEN               asks for the value, and does not show it
  gh auth token | svc vault set GITHUB_TOKEN
  svc vault set TELEGRAM_TOKEN --label channel < token.txt
  svc vault list
  svc vault delete GITHUB_TOKEN`,
	commands: {
		list: {
			description: 'List the secrets, without their values',
			async run(cli) {
				const secrets = await cli.api.request<StoredSecret[]>('GET', '/v1/vault/secrets')
				answerTable(cli, secrets, 'No secrets yet. Store one: svc vault set NAME', (one) => ({
					name: one.damaged ? `${one.name} (damaged: delete it)` : one.name,
					label: one.policy_label,
					id: one.id,
					created: when(one.created_at),
				}))
			},
		},
		set: {
			description: 'Store a secret or change its value, which is asked for or read from standard input',
			arguments: '<name>',
			options: { '--label <label>': 'its purpose; `channel` marks the token of a bot; cannot be changed later' },
			takesSecret: true,
			async run(cli, { name, label }: { name: string; label?: string }) {
				if (name.includes('='))
					throw new CliError('usage', 'give only the name: the value is asked for, or read from standard input')
				const value = await secretInput(cli, `Value of ${name}`)
				const { secret, made } = await storeSecret(cli.api, name, value, label)
				if (secret.warning) cli.out.note(`Note: ${secret.warning}.`)
				cli.out.answer({ ...secret, status: made ? 'created' : 'changed' }, () =>
					made
						? `Stored ${name}. To let an agent use it: svc grants add AGENT ${name}`
						: `Changed the value of ${name}. Its grants stay.`,
				)
			},
		},
		delete: {
			description: 'Delete a secret, by name or id, with its grants',
			arguments: '<secret>',
			options: yesOption,
			async run(cli, { secret, ...options }: { secret: string; yes?: boolean }) {
				await consent(cli, options, `Delete the secret ${secret} with its grants?`)
				await cli.api.request('DELETE', path`/v1/vault/secrets/${secret}`)
				cli.out.answer({ secret, status: 'deleted' }, () => `Deleted ${secret}.`)
			},
		},
		'rotate-key': {
			description: 'Change the master key; secrets and grants stay as they are',
			options: yesOption,
			async run(cli, options: { yes?: boolean }) {
				await consent(cli, options, 'Create a new keys/vault.key? Earlier backups need a copy of the current one.')
				const rotated = await cli.api.request<{ secrets: number }>('POST', '/v1/vault/rotate-key')
				cli.out.answer(
					rotated,
					({ secrets }) => `Changed the master key of ${pluralize(secrets, 'secret')}. Back it up.`,
				)
			},
		},
		reset: {
			description: 'Empty a vault whose master key is lost: deletes all secrets and grants',
			options: yesOption,
			async run(cli, options: { yes?: boolean }) {
				await consent(cli, options, 'Delete all secrets and grants? This cannot be undone.')
				const reset = await cli.api.request<{ secrets: number }>('POST', '/v1/vault/reset')
				cli.out.answer(
					reset,
					({ secrets }) =>
						`Deleted ${pluralize(secrets, 'secret')}. Back up the key, and store the secrets again: svc vault set NAME`,
				)
			},
		},
	},
} satisfies Command
