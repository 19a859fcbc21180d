import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register } from '../contract.ts'
import { pick } from '../pick.ts'
import { when } from '../when.ts'

interface Grant {
	grant_id: string
	agent_id: string
	secret_id: string
	reveal: boolean
	created_at: string
}

/** With the secret's name, where the caller may see it. */
type NamedGrant = Grant & { secret?: string }

export const register: Register = (program, cli) => {
	const grants = program
		.command('grants')
		.description('Say which agent may use which secret')
		.addHelpText('after', examples)

	grants
		.command('list [agent]')
		.description('List the grants, of one agent or of all')
		.action(async (agent?: string) => {
			cli.out.answer(await listed(agent), (list, style) =>
				style.table(
					['agent', 'secret', 'model sees', 'grant', 'since'],
					list.map((one) => [
						one.agent_id,
						one.secret ?? one.secret_id,
						one.reveal ? 'the value' : 'a handle',
						one.grant_id,
						when(one.created_at),
					]),
					`No grants yet. Give an agent a secret: svc grants add ${agent ?? 'ada'} NAME`,
				),
			)
		})

	grants
		.command('add <agent> <secret>')
		.description('Let an agent use a secret, by name or id')
		.option('--reveal', 'the model itself sees the value, instead of a handle that the gateway fills in')
		.action(async (agent: string, secret: string, { reveal = false }: { reveal?: boolean }) => {
			const body = { agent_id: agent, secret_id: secret, reveal }
			const grant = await cli.api.request<Grant>('POST', '/v1/vault/grants', body)
			cli.out.answer(grant, () =>
				reveal
					? `${agent} may read ${secret}, and its model sees the value.`
					: `${agent} may use ${secret}: its model gets a handle, and skills and MCP servers the value.`,
			)
		})

	grants
		.command('revoke <grant> [secret]')
		.description('Take a secret away, at once: by the id of the grant, or by agent and secret')
		.option(...yesOption)
		.action(async (given: string, secret: string | undefined, options: { yes?: boolean }) => {
			const grant_id = secret === undefined ? given : await between(given, secret)
			const what = secret === undefined ? `the grant ${given}` : `${secret} from ${given}`
			await consent(cli, options, secret === undefined ? `Revoke ${what}?` : `Take ${what}?`)
			await cli.api.request('DELETE', path`/v1/vault/grants/${grant_id}`)
			cli.out.answer({ grant_id, status: 'revoked' }, () => `Revoked. The next read is denied.`)
		})

	async function listed(agent?: string): Promise<NamedGrant[]> {
		const where = agent === undefined ? '/v1/vault/grants' : path`/v1/vault/grants?agent_id=${agent}`
		const [list, names] = await Promise.all([cli.api.request<Grant[]>('GET', where), secretNames()])
		return list.map((one) => {
			const secret = names.get(one.secret_id)
			return secret === undefined ? one : { ...one, secret }
		})
	}

	/** Names by id; none for a caller without the scope to see them. */
	async function secretNames(): Promise<Map<string, string>> {
		try {
			const secrets = await cli.api.request<{ id: string; name: string }[]>('GET', '/v1/vault/secrets')
			return new Map(secrets.map(({ id, name }) => [id, name]))
		} catch (error) {
			if (error instanceof CliError && error.exit === 'denied') return new Map()
			throw error
		}
	}

	async function between(agent: string, secret: string): Promise<string> {
		const kind = `grant of ${agent} for`
		const names = (one: NamedGrant) => [one.secret ?? null, one.secret_id]
		return pick(await listed(agent), secret, { kind, id: (one) => one.grant_id, names }).grant_id
	}
}

const examples = `
Examples:
  svc grants add ada GITHUB_TOKEN          its model gets a handle, never the value
  svc grants add ada API_PIN --reveal      its model gets the value
  svc grants revoke ada GITHUB_TOKEN`
