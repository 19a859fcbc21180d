import { consent, yesOption } from '../../../core/cli/consent.ts'
import { path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { permitted } from '../../../core/cli/or-null.ts'
import { pick } from '../../../core/cli/pick.ts'
import { defined } from '../../../core/util/defined.ts'
import { when } from '../../../core/cli/when.ts'
import type { Grant } from '../contract.ts'

/** With the secret's name, if the caller may see it. */
type NamedGrant = Grant & { secret?: string }

export default {
	examples: `
Examples:
  svc grants add ada GITHUB_TOKEN          the model gets a handle, never the value
  svc grants add ada GITHUB_TOKEN --host api.github.com
                                           the value is sent to this host only
  svc grants add ada API_PIN --reveal      the model gets the value
  svc grants revoke ada GITHUB_TOKEN`,
	commands: {
		list: {
			description: 'List the grants, of one agent or of all',
			arguments: '[agent]',
			async run(cli, { agent }: { agent?: string }) {
				const empty = `No grants yet. Let an agent use a secret: svc grants add ${agent ?? 'ada'} NAME`
				answerTable(cli, await listed(cli, agent), empty, (one) => ({
					agent: one.agent_id,
					secret: one.secret ?? one.secret_id,
					'model sees': one.reveal ? 'the value' : 'a handle',
					grant: one.grant_id,
					since: when(one.created_at),
					hosts: one.hosts?.join(', ') ?? 'any',
				}))
			},
		},
		add: {
			description: 'Let an agent use a secret, by name or id',
			arguments: '<agent> <secret>',
			options: {
				'--reveal': 'the model gets the value itself instead of a handle',
				'--host <host...>':
					'send the value only to these hosts, such as api.example.com, and not to programs on this machine',
			},
			async run(
				cli,
				{ agent, secret, ...options }: { agent: string; secret: string; reveal?: boolean; host?: string[] },
			) {
				const { reveal = false, host: hosts } = options
				const body = { agent_id: agent, secret_id: secret, reveal, hosts }
				const grant = await cli.api.request<Grant>('POST', '/v1/vault/grants', body)
				cli.out.answer(grant, () => {
					if (reveal) return `${agent} may read ${secret}, and its model sees the value.`
					const may = `${agent} may use ${secret}: its model gets a handle`
					return hosts
						? `${may}, and the value is sent to ${grant.hosts?.join(', ')} only.`
						: `${may}, and skills and MCP servers get the value.`
				})
			},
		},
		revoke: {
			description: 'Revoke a grant, effective at once: by its id, or by agent and secret',
			arguments: '<grant> [secret]',
			options: yesOption,
			async run(cli, { grant: given, secret, ...options }: { grant: string; secret?: string; yes?: boolean }) {
				const grant_id = secret === undefined ? given : await grantIdFor(cli, given, secret)
				const what = secret === undefined ? `the grant ${given}` : `the grant of ${secret} to ${given}`
				await consent(cli, options, `Revoke ${what}?`)
				await cli.api.request('DELETE', path`/v1/vault/grants/${grant_id}`)
				cli.out.answer({ grant_id, status: 'revoked' }, () => `Revoked. The next read is denied.`)
			},
		},
	},
} satisfies Command

async function listed(cli: Cli, agent?: string): Promise<NamedGrant[]> {
	const where = agent === undefined ? '/v1/vault/grants' : path`/v1/vault/grants?agent_id=${agent}`
	const [list, secrets] = await Promise.all([
		cli.api.request<Grant[]>('GET', where),
		permitted(cli.api.request<{ id: string; name: string }[]>('GET', '/v1/vault/secrets')),
	])
	const names = new Map(secrets?.map(({ id, name }) => [id, name]))
	return list.map((one) => defined({ ...one, secret: names.get(one.secret_id) }))
}

async function grantIdFor(cli: Cli, agent: string, secret: string): Promise<string> {
	const kind = `grant of ${agent} for`
	const names = (one: NamedGrant) => [one.secret ?? null, one.secret_id]
	return pick(await listed(cli, agent), secret, { kind, id: (one) => one.grant_id, names }).grant_id
}
